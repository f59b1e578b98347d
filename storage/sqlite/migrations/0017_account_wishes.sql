-- What an account asked for beside what the open hub takes, as JSON; "" for requests to
-- the open hub.
ALTER TABLE verifications ADD COLUMN wish TEXT NOT NULL DEFAULT '';

DROP VIEW stored_verifications;

-- What is read of a verification, in the order that verification_rows.py expects.
CREATE VIEW stored_verifications AS
SELECT id, account_id, mode, topic, callback, lease_seconds, secret, algorithm, format,
    verify_token, state, created_at, attempts, due, tried_at, status, excerpt, reason,
    wish
FROM verifications;
