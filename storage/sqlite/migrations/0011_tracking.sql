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
