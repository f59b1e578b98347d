-- More failed requests and catch-ups of each subscription are kept. A number counts those of
-- a subscription, so that the oldest are found without counting them; 0: it was kept before.
ALTER TABLE attempts ADD COLUMN number INTEGER NOT NULL DEFAULT 0;

CREATE INDEX attempts_in_full ON attempts (subscription_id, id) WHERE details IS NOT NULL;
