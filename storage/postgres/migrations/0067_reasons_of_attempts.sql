-- Why a request was made then: the number of a `storage.records.AttemptReason`. 0: it was
-- kept before that was noted.
ALTER TABLE attempts ADD COLUMN reason smallint NOT NULL DEFAULT 0;
