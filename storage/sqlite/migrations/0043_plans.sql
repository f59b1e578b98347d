-- What is done to all that a filter finds, once it is confirmed, and how far that is
-- (storage.records.BulkPlan). The filter, the sample and the failures are JSON.
CREATE TABLE plans (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL,
    action TEXT NOT NULL,
    kind TEXT NOT NULL,
    wanted TEXT NOT NULL,
    category TEXT NOT NULL,
    head INTEGER NOT NULL,
    total INTEGER NOT NULL,
    sample TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    confirmed_at INTEGER,
    finished_at INTEGER,
    place_id INTEGER,               -- it goes on behind it; NULL: at the start
    place_key TEXT,
    done INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    failures TEXT NOT NULL DEFAULT '[]'
) STRICT;

CREATE INDEX plans_by_account ON plans (account_id, id);
CREATE INDEX plans_running ON plans (id) WHERE state = 'running';
