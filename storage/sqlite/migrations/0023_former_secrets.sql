-- While a subscriber changes its secret: the one that signed before, encrypted, and the
-- milliseconds until which it signs as well. "" and NULL when there is none.
ALTER TABLE subscriptions ADD COLUMN former_secret TEXT NOT NULL DEFAULT '';
ALTER TABLE subscriptions ADD COLUMN former_until INTEGER;
CREATE INDEX subscriptions_with_former ON subscriptions (former_until)
    WHERE former_until IS NOT NULL;

DROP VIEW stored_subscriptions;
CREATE VIEW stored_subscriptions AS
SELECT s.id, s.account_id, t.url AS topic, s.feed_id, s.callback, s.secret,
    s.algorithm, s.format, s.updates, s.batch, s.state, s.from_position, s.lease_end,
    s.created_at, s.exhausted, s.ended_reason, s.former_secret, s.former_until
FROM subscriptions s JOIN topics t ON t.id = s.topic_id;

DROP VIEW stored_stragglers;
CREATE VIEW stored_stragglers AS
SELECT s.id, s.account_id, t.url AS topic, s.feed_id, s.callback, s.secret,
    s.algorithm, s.format, s.updates, s.batch, s.state, s.from_position, s.lease_end,
    s.created_at, s.exhausted, s.ended_reason, s.former_secret, s.former_until,
    g.position, g.attempts, g.next_try, g.failing_since, g.last_status, g.last_error,
    g.skip_after, g.skip_to, g.missed_first, g.missed_last, g.lease_id, g.tried_to
FROM stragglers g
JOIN subscriptions s ON s.id = g.subscription_id
JOIN topics t ON t.id = s.topic_id;
