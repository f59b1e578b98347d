-- Track queries. Each is a feed of its own in the state 'track', which is never fetched:
-- its records name entries of the feeds that they come from.
CREATE TABLE track_queries (
    feed_id INTEGER PRIMARY KEY,
    query TEXT NOT NULL,            -- as the first who asked for it wrote it
    wanted_at INTEGER NOT NULL      -- when somebody last asked for it or listened
) STRICT;

-- The feed whose entries a record of a track query names; NULL: its own feed's.
ALTER TABLE records ADD COLUMN source_id INTEGER;

-- Counts the queries that were added or have returned: what was held against fewer of
-- them is held against them again.
ALTER TABLE meta ADD COLUMN queries INTEGER NOT NULL DEFAULT 0;

-- What maintenance found out about each feed, and when it is due again.
CREATE TABLE standings (
    feed_id INTEGER PRIMARY KEY,
    due INTEGER NOT NULL,
    maintained_at INTEGER,          -- NULL until the first time; so is all below
    popularity REAL,
    porn_rank REAL,                 -- NULL also without a list of words
    is_stale INTEGER,
    site TEXT                       -- host and path of its page; "" if it names none
) STRICT;

CREATE INDEX standings_due ON standings (due);
CREATE INDEX standings_by_site ON standings (site, feed_id) WHERE site <> '';

INSERT INTO standings (feed_id, due) SELECT id, 0 FROM feeds;

-- Pages (host and path) that a public feed's latest entries link to.
CREATE TABLE feed_links (
    place TEXT NOT NULL,
    feed_id INTEGER NOT NULL,
    PRIMARY KEY (place, feed_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX feed_links_by_feed ON feed_links (feed_id);
