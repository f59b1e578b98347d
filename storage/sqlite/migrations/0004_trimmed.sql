-- Up to where records of a feed, baselines not counted, were trimmed from the log: only
-- who resumes below that has missed anything.
CREATE TABLE trimmed (
    feed_id INTEGER PRIMARY KEY,
    position INTEGER NOT NULL
) STRICT;

-- What was trimmed before this table is not known; it may have been of any feed.
INSERT INTO trimmed
SELECT feeds.id, meta.tail FROM feeds, meta WHERE meta.tail > 0;
