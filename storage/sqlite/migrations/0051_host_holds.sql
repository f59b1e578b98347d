-- Hosts that want no request before a time, which a restart is not to forget.
CREATE TABLE host_holds (
    host TEXT PRIMARY KEY,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
