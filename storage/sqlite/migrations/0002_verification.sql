-- Other spellings of a topic. "" where the URL is in its normal form.
ALTER TABLE topics ADD COLUMN normal TEXT NOT NULL DEFAULT '';

CREATE INDEX topics_by_normal ON topics (normal) WHERE normal <> '';

-- Requests to the open hub: pending while due is set, then kept for their diagnostics.
CREATE TABLE verifications (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL,
    mode TEXT NOT NULL,
    topic TEXT NOT NULL,
    callback TEXT NOT NULL,
    host TEXT NOT NULL,             -- of the callback
    key_hash BLOB NOT NULL,         -- of account, topic and callback in normal form
    token_hash BLOB NOT NULL,       -- of the token that opens the diagnostics
    lease_seconds INTEGER NOT NULL,
    secret TEXT NOT NULL,           -- encrypted; "" when there is none, or it is done
    algorithm TEXT NOT NULL,
    format TEXT NOT NULL,
    verify_token TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    due INTEGER,
    tried_at INTEGER,
    status INTEGER NOT NULL,
    excerpt TEXT NOT NULL,
    reason TEXT NOT NULL,
    kept_until INTEGER
) STRICT;

CREATE UNIQUE INDEX verifications_by_token ON verifications (token_hash);
CREATE INDEX verifications_due ON verifications (due) WHERE due IS NOT NULL;
CREATE INDEX verifications_pending ON verifications (key_hash, id)
    WHERE due IS NOT NULL;
CREATE INDEX verifications_kept ON verifications (kept_until)
    WHERE kept_until IS NOT NULL;

-- How many are pending of each callback host, and under "" of all; kept by triggers.
CREATE TABLE pending_counts (
    host TEXT PRIMARY KEY,
    pending INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER verification_added AFTER INSERT ON verifications
WHEN NEW.due IS NOT NULL
BEGIN
    INSERT INTO pending_counts VALUES ('', 1), (NEW.host, 1)
        ON CONFLICT (host) DO UPDATE SET pending = pending + 1;
END;

CREATE TRIGGER verification_done AFTER UPDATE OF due ON verifications
WHEN OLD.due IS NOT NULL AND NEW.due IS NULL
BEGIN
    UPDATE pending_counts SET pending = pending - 1 WHERE host IN ('', NEW.host);
    DELETE FROM pending_counts WHERE host = NEW.host AND pending = 0;
END;

-- What is read of a verification, in the order that verification_rows.py expects.
CREATE VIEW stored_verifications AS
SELECT id, account_id, mode, topic, callback, lease_seconds, secret, algorithm, format,
    verify_token, state, created_at, attempts, due, tried_at, status, excerpt, reason
FROM verifications;
