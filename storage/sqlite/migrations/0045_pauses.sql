-- Whether its subscription is paused: then it is neither claimed nor made due by news.
ALTER TABLE stragglers ADD COLUMN is_paused INTEGER NOT NULL DEFAULT 0;

DROP INDEX stragglers_due;
DROP INDEX stragglers_by_news;
CREATE INDEX stragglers_due ON stragglers (due) WHERE is_paused = 0;
CREATE INDEX stragglers_by_news ON stragglers (feed_id, news_from) WHERE is_paused = 0;

-- Asked of each fan-out, so that the usual answer, nobody, costs one look.
CREATE INDEX subscriptions_paused ON subscriptions (feed_id, id)
    WHERE paused_at IS NOT NULL;

DROP VIEW stored_stragglers;
CREATE VIEW stored_stragglers AS
SELECT s.id, s.account_id, t.url AS topic, s.feed_id, s.callback, s.secret,
    s.algorithm, s.format, s.updates, s.batch, s.state, s.from_position, s.lease_end,
    s.created_at, s.exhausted, s.ended_reason, s.former_secret, s.former_until,
    g.position, g.attempts, g.next_try, g.failing_since, g.last_status, g.last_error,
    g.skip_after, g.skip_to, g.missed_first, g.missed_last, g.lease_id, g.tried_to,
    g.is_paused
FROM stragglers g
JOIN subscriptions s ON s.id = g.subscription_id
JOIN topics t ON t.id = s.topic_id;
