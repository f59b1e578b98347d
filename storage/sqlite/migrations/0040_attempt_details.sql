-- Of an attempt that failed: the callback's host as it was asked, and what was sent and
-- answered, of the latest ones of each subscription (storage.records.AttemptDetails).
ALTER TABLE attempts ADD COLUMN host TEXT NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN details BLOB;

CREATE INDEX attempts_of_host ON attempts (host, at, status) WHERE error <> '';
CREATE INDEX attempts_of_status ON attempts (status / 100, at, status)
    WHERE error <> '';
