-- What takes credentials is the operator's alone: whatever others subscribed to before it
-- did ends, as if the feed were removed, and they are told.
UPDATE subscriptions
SET state = 'ending', ended_reason = 'the feed was removed',
    ended_at = CAST(strftime('%s', 'now') AS INTEGER) * 1000
WHERE account_id <> 2 AND state IN ('pending', 'active')
    AND feed_id IN (SELECT id FROM feeds WHERE credentials <> '');

DELETE FROM stragglers
WHERE subscription_id IN (SELECT id FROM subscriptions WHERE state = 'ending');
