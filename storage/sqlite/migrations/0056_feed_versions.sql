-- What a fetch was decided on: grows with what operators change of a feed, and with
-- commits that find more than that nothing is new.
ALTER TABLE feeds ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
