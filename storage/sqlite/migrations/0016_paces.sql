-- How fast a feed is asked: the power of two, of seconds, that its period begins with
-- (storage.records.paces). Overdue feeds are taken by how late they are for it.
ALTER TABLE schedule ADD COLUMN pace INTEGER NOT NULL DEFAULT 11;

WITH RECURSIVE powers (pace) AS (
    VALUES (0) UNION ALL SELECT pace + 1 FROM powers WHERE pace < 21
),
periods (feed_id, seconds) AS (
    SELECT id, json_extract(CAST(polling AS TEXT), '$.period')
    FROM feeds WHERE polling <> x''
)
UPDATE schedule SET pace = (SELECT max(pace) FROM powers WHERE 1 << pace <= max(1, seconds))
FROM periods WHERE periods.feed_id = schedule.feed_id AND seconds > 0;

-- In the order of (pace, next_fetch, feed_id), and nothing else is to be read.
DROP INDEX schedule_due;
CREATE INDEX schedule_due ON schedule (is_active, pace, next_fetch);
