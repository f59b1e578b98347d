-- Of the records of one commit only the last is_superseded = 0 one brings as-is
-- subscriptions the document. Those committed before bring it each.
ALTER TABLE records ADD COLUMN is_superseded INTEGER NOT NULL DEFAULT 0;

-- What decides who gets a record, as the table "wanted" has it.
ALTER TABLE records ADD COLUMN news TEXT
    AS (kind || '/' || any_fresh || '/' || is_superseded) VIRTUAL;

-- Of the record that brought the document; 0: of one from before, or of none.
ALTER TABLE bodies ADD COLUMN position INTEGER NOT NULL DEFAULT 0;

-- Up to where the request went that is being tried or has failed: the next try is the
-- same notification, whatever came since.
ALTER TABLE stragglers ADD COLUMN tried_to INTEGER;

DROP VIEW stored_stragglers;

CREATE VIEW stored_stragglers AS
SELECT s.id, s.account_id, t.url AS topic, s.feed_id, s.callback, s.secret,
    s.algorithm, s.format, s.updates, s.batch, s.state, s.from_position, s.lease_end,
    s.created_at, s.exhausted, s.ended_reason,
    g.position, g.attempts, g.next_try, g.failing_since, g.last_status, g.last_error,
    g.skip_after, g.skip_to, g.missed_first, g.missed_last, g.lease_id, g.tried_to
FROM stragglers g
JOIN subscriptions s ON s.id = g.subscription_id
JOIN topics t ON t.id = s.topic_id;
