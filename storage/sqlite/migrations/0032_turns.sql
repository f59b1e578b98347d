-- Feeds take turns: whose last chunk is the oldest is next, and whose fan-out waited
-- behind no other of its own comes before all that had one.
ALTER TABLE fanouts ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;

DROP INDEX fanouts_next;
CREATE INDEX fanouts_next ON fanouts (turn, position) WHERE is_next = 1;
