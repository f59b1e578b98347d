-- Sources that are read by many requests, in steps (hub.core.sites).
CREATE TABLE site_states (
    feed_id INTEGER PRIMARY KEY,
    state BLOB NOT NULL             -- how far the reading has come
) STRICT;

CREATE TABLE site_pages (
    feed_id INTEGER NOT NULL,
    key_hash BLOB NOT NULL,
    key TEXT NOT NULL,
    reference TEXT NOT NULL,        -- what its source calls it
    content INTEGER NOT NULL,
    stamp INTEGER NOT NULL,         -- what the source last said of it
    walk INTEGER NOT NULL,          -- the last one in which it was listed
    day INTEGER NOT NULL,
    changes INTEGER NOT NULL,
    deleted INTEGER NOT NULL,
    PRIMARY KEY (feed_id, key_hash)
) STRICT, WITHOUT ROWID;
