-- Where the publisher of a feed is asked about each new subscription; "" where its
-- document or header may name that.
ALTER TABLE feeds ADD COLUMN subscription_callback TEXT NOT NULL DEFAULT '';
