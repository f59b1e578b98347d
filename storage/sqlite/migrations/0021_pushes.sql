-- Feeds that hubs of others may push, what that has come to, and when to look next.
CREATE TABLE pushes (
    feed_id INTEGER PRIMARY KEY,
    way TEXT NOT NULL,              -- "" when the feed offers nothing any more
    hub TEXT NOT NULL,
    topic TEXT NOT NULL,
    marks TEXT NOT NULL,            -- a JSON array
    record BLOB NOT NULL,           -- JSON, storage.records.PushRecord
    until INTEGER,                  -- the end of the longest active callback
    hinted_at INTEGER,
    failures INTEGER NOT NULL DEFAULT 0,
    asked_at INTEGER,               -- when any hub was last asked
    retry_at INTEGER,
    trouble TEXT NOT NULL DEFAULT '',
    due INTEGER                     -- when something may have to be done about it
) STRICT;

CREATE INDEX pushes_due ON pushes (due) WHERE due IS NOT NULL;
CREATE INDEX pushes_by_hub ON pushes (hub);

CREATE TABLE push_callbacks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    feed_id INTEGER NOT NULL,
    way TEXT NOT NULL,
    hub TEXT NOT NULL,
    topic TEXT NOT NULL,
    token_hash BLOB NOT NULL UNIQUE,
    token TEXT NOT NULL,            -- encrypted, and so the secret
    secret TEXT NOT NULL,
    state TEXT NOT NULL,
    asked_at INTEGER NOT NULL,
    until INTEGER NOT NULL
) STRICT;

CREATE INDEX push_callbacks_by_feed ON push_callbacks (feed_id, id);

-- The hub "" stands for all.
CREATE TABLE push_hubs (
    hub TEXT NOT NULL,
    what TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (hub, what)
) STRICT, WITHOUT ROWID;

CREATE INDEX push_hubs_by_count ON push_hubs (what, count);

-- A feed that is paused, given up or removed is not subscribed to either.
CREATE TRIGGER push_of_feed_turned AFTER UPDATE OF state ON feeds
WHEN NEW.state <> OLD.state
BEGIN
    UPDATE pushes SET due = 0 WHERE feed_id = NEW.id;
END;
