-- What opens the API for an account. The token itself is not kept, only its SHA-256.
CREATE TABLE tokens (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL,
    digest BLOB NOT NULL UNIQUE,
    rights TEXT NOT NULL,           -- names, separated by spaces
    label TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    used_at INTEGER,                -- to the hour or so
    revoked_at INTEGER
) STRICT;
