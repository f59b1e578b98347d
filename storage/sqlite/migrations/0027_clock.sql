-- The latest time that the hub has noted, in milliseconds; 0: none yet. A clock that
-- shows an earlier one has gone back.
ALTER TABLE meta ADD COLUMN seen_at INTEGER NOT NULL DEFAULT 0;
