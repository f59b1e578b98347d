-- Of the records of one commit only the last is_superseded = 0 one brings as-is
-- subscriptions the document. Those committed before bring it each.
ALTER TABLE records ADD COLUMN is_superseded INTEGER NOT NULL DEFAULT 0;

-- What decides who gets a record, as the table "wanted" has it.
ALTER TABLE records ADD COLUMN news TEXT
    AS (kind || '/' || any_fresh || '/' || is_superseded) VIRTUAL;
