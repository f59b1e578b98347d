-- Who does what is due: see storage.contract.ClaimStore. A claim that was over for an hour
-- is deleted.
CREATE TABLE claims (
    kind TEXT NOT NULL,
    item INTEGER NOT NULL,
    lease_id INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (kind, item)
) STRICT, WITHOUT ROWID;
