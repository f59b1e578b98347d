-- Whose track query it is: what it finds is what that account may read. 0: of several
-- accounts, from before queries had accounts; it finds what is public.
ALTER TABLE track_queries ADD COLUMN account_id INTEGER NOT NULL DEFAULT 0;

UPDATE track_queries SET account_id = coalesce((
    SELECT iif(min(account_id) = max(account_id), min(account_id), 0)
    FROM subscriptions s
    WHERE s.feed_id = track_queries.feed_id
        AND s.state IN ('pending', 'active', 'ending')), 0);
