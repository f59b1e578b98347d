-- A feed whose first fetch has found nothing has a polling state, too: what is hot of it,
-- while the rest is as it is before the first fetch.
DROP VIEW stored_feeds;

CREATE VIEW stored_feeds AS
SELECT f.id, f.url, f.state, f.private, f.section, f.title, f.format, s.next_fetch,
    f.created_at, f.removed_at,
    CASE x'' WHEN h.polling THEN x'' WHEN f.polling THEN h.polling ELSE CAST(
        substr(f.polling, 1, length(f.polling) - 1) || ',' || substr(h.polling, 2)
        AS BLOB) END AS polling,
    f.credentials, f.condition, f.condition_since, f.turned_at, f.own_period,
    f.keeps_document, f.subscribers, f.version
FROM feeds f CROSS JOIN schedule s ON s.feed_id = f.id
CROSS JOIN feed_hot h ON h.feed_id = f.id;
