-- The order of pages, newest first: dated is that of the entry that is shown. shown_at
-- is when the page appeared, or was there again.
ALTER TABLE pages ADD COLUMN dated INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pages ADD COLUMN shown_at INTEGER NOT NULL DEFAULT 0;

UPDATE pages SET shown_at = changed_at, dated = coalesce(
    (SELECT m.dated FROM page_entries m WHERE m.entry_id = pages.entry_id), 0);

CREATE INDEX pages_by_date ON pages (dated, id) WHERE entry_id > 0;
CREATE INDEX pages_by_time ON pages (changed_at, change);

-- How many pages are shown, by stretches of time: 2^35 ms, and of each stretch 128
-- parts, three times over. So a page of the list is found without counting those before it.
CREATE TABLE page_counts (
    level INTEGER NOT NULL,
    bucket INTEGER NOT NULL,        -- dated divided by the length of a stretch
    pages INTEGER NOT NULL,
    PRIMARY KEY (level, bucket)
) STRICT, WITHOUT ROWID;

INSERT INTO page_counts
    SELECT 0, dated >> 35, count(*) FROM pages WHERE entry_id > 0 GROUP BY 2
    UNION ALL
    SELECT 1, dated >> 28, count(*) FROM pages WHERE entry_id > 0 GROUP BY 2
    UNION ALL
    SELECT 2, dated >> 21, count(*) FROM pages WHERE entry_id > 0 GROUP BY 2
    UNION ALL
    SELECT 3, dated >> 14, count(*) FROM pages WHERE entry_id > 0 GROUP BY 2;
