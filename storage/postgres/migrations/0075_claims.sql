-- Who does what is due: see storage.contract.ClaimStore. Until when is in milliseconds of
-- the server's clock. A claim that is over is deleted.
CREATE TABLE claims (
    kind text COLLATE "C" NOT NULL,     -- a storage.records.WorkKind
    item bigint NOT NULL,
    lease_id bigint NOT NULL,
    incarnation bigint NOT NULL,        -- of the node that holds it
    until bigint NOT NULL,
    PRIMARY KEY (kind, item)
) WITH (fillfactor = 50);
