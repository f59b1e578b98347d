-- Lists of feeds elsewhere that the hub keeps in step with, and the feeds of each.
CREATE TABLE list_watches (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    url TEXT NOT NULL UNIQUE,
    category TEXT NOT NULL,         -- of feeds in no folder
    private INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    due INTEGER NOT NULL,
    read_at INTEGER,
    error TEXT NOT NULL DEFAULT '',
    failures INTEGER NOT NULL DEFAULT 0,
    validators TEXT NOT NULL DEFAULT '',    -- JSON, storage.records.Validators
    is_doubted INTEGER NOT NULL DEFAULT 0,
    feeds INTEGER NOT NULL DEFAULT 0,
    refused INTEGER NOT NULL DEFAULT 0,
    added INTEGER NOT NULL DEFAULT 0,
    removed INTEGER NOT NULL DEFAULT 0,
    kept INTEGER NOT NULL DEFAULT 0,
    changed_at INTEGER
) STRICT;

CREATE INDEX list_watches_due ON list_watches (due);

CREATE TABLE watched_feeds (
    watch_id INTEGER NOT NULL,
    resource_hash BLOB NOT NULL,
    url TEXT NOT NULL,
    category TEXT NOT NULL,
    fate TEXT NOT NULL,
    feed_id INTEGER,
    PRIMARY KEY (watch_id, resource_hash)
) STRICT, WITHOUT ROWID;

CREATE INDEX watched_feeds_by_feed ON watched_feeds (feed_id)
    WHERE feed_id IS NOT NULL;
