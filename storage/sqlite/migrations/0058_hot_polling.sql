-- What every fetch changes of a feed's polling state, apart from the rest: a fetch that
-- finds nothing new writes a short row. Both parts are JSON objects, which together are
-- the whole (storage.records.HOT_FIELDS); they are empty before the first fetch.
CREATE TABLE feed_hot (
    feed_id INTEGER PRIMARY KEY,
    polling BLOB NOT NULL DEFAULT x'',
    recent_polls BLOB NOT NULL DEFAULT x''
) STRICT;

INSERT INTO feed_hot
SELECT id, CASE polling WHEN x'' THEN x'' ELSE (
    SELECT CAST(json_group_object(key, value) AS BLOB)
    FROM json_each(CAST(polling AS TEXT)) WHERE key IN (
        'last_fetch', 'last_success', 'last_parse', 'code', 'message', 'error',
        'failures', 'failing_since', 'gone_sightings', 'missing_sightings',
        'missing_since', 'unchanged', 'period', 'price', 'velocity', 'retry_after',
        'fresh_until', 'next_reason', 'subscribers'
    )) END, recent_polls
FROM feeds;

UPDATE feeds SET polling = CAST(json_remove(CAST(polling AS TEXT),
        '$.last_fetch', '$.last_success', '$.last_parse', '$.code', '$.message',
        '$.error', '$.failures', '$.failing_since', '$.gone_sightings',
        '$.missing_sightings', '$.missing_since', '$.unchanged', '$.period', '$.price',
        '$.velocity', '$.retry_after', '$.fresh_until', '$.next_reason',
        '$.subscribers'
) AS BLOB) WHERE polling <> x'';

CREATE TRIGGER feed_hot_added AFTER INSERT ON feeds
BEGIN
    INSERT INTO feed_hot (feed_id) VALUES (NEW.id);
END;

DROP TRIGGER polls_moved;

CREATE TRIGGER polls_moved AFTER UPDATE OF recent_polls ON feed_hot
WHEN length(NEW.recent_polls) < length(OLD.recent_polls)
BEGIN
    INSERT INTO earlier_polls VALUES (OLD.feed_id, OLD.recent_polls)
        ON CONFLICT (feed_id) DO UPDATE SET
            polls = substr(CAST(polls || excluded.polls AS BLOB), -896);
END;

DROP VIEW stored_feeds;

ALTER TABLE feeds DROP COLUMN recent_polls;

CREATE VIEW stored_feeds AS
SELECT f.id, f.url, f.state, f.private, f.section, f.title, f.format, s.next_fetch,
    f.created_at, f.removed_at,
    iif(h.polling = x'', x'', CAST(
        substr(f.polling, 1, length(f.polling) - 1) || ',' || substr(h.polling, 2)
        AS BLOB)) AS polling,
    f.credentials, f.condition, f.condition_since, f.turned_at, f.own_period,
    f.keeps_document, f.subscribers, f.version
FROM feeds f CROSS JOIN schedule s ON s.feed_id = f.id
CROSS JOIN feed_hot h ON h.feed_id = f.id;
