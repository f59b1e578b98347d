-- Who does what is due: see storage.contract.ClaimStore. A claim that was over for an hour
-- is deleted.
CREATE TABLE claims (
    kind text COLLATE "C" NOT NULL,     -- a storage.records.WorkKind
    item bigint NOT NULL,
    lease_id bigint NOT NULL,
    incarnation bigint NOT NULL,        -- of the node that holds it
    until bigint NOT NULL,              -- when it is over, in ms by the server's clock
    PRIMARY KEY (kind, item)
) WITH (fillfactor = 50);
