-- What people and programs did to the hub.
CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    account_id INTEGER NOT NULL,
    token_id INTEGER,           -- NULL: the admin token, or none
    is_admin INTEGER NOT NULL,
    session TEXT NOT NULL,      -- a name of it
    address TEXT NOT NULL,
    source TEXT NOT NULL,
    operation TEXT NOT NULL,
    target TEXT,                -- what kind of thing
    target_id INTEGER,
    target_name TEXT NOT NULL,
    status INTEGER NOT NULL,
    detail TEXT NOT NULL
) STRICT;
CREATE INDEX audit_by_time ON audit (at);
CREATE INDEX audit_by_account ON audit (account_id, at);
CREATE INDEX audit_by_token ON audit (token_id, at) WHERE token_id IS NOT NULL;
CREATE INDEX audit_by_operation ON audit (operation, at);
CREATE INDEX audit_by_target ON audit (target_id, target, at)
    WHERE target_id IS NOT NULL;
CREATE INDEX audit_by_rank ON audit (is_admin, id);
