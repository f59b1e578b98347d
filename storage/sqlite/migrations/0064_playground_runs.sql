-- Runs of the WebSub playground, so that their addresses last.
CREATE TABLE playground_runs (
    id TEXT PRIMARY KEY,
    used_at INTEGER NOT NULL,
    body BLOB NOT NULL              -- encrypted: a run has secrets
) STRICT, WITHOUT ROWID;
