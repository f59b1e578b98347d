-- Sessions of operators at the hub's pages, and links that begin one.
CREATE TABLE sessions (
    digest BLOB PRIMARY KEY,    -- of the secret that the browser has, or the link
    token_id INTEGER,           -- NULL: the admin token
    is_link INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
