-- oldest program 68
-- Several nodes may have joined; one that is alone joins only while no other has.
ALTER TABLE nodes ADD COLUMN is_alone boolean NOT NULL DEFAULT TRUE;

-- The node that holds a lease. `chunks.due`, and the end of a retry's lease, are in
-- milliseconds of the server's clock.
ALTER TABLE chunks ADD COLUMN incarnation bigint NOT NULL DEFAULT 0;
ALTER TABLE retries ADD COLUMN incarnation bigint NOT NULL DEFAULT 0;
ALTER TABLE retries ADD COLUMN leased_until bigint NOT NULL DEFAULT 0;
CREATE INDEX retries_leased ON retries (leased_until) WHERE lease_id <> 0;

-- Epochs of the log that came to their end while nodes were working at it.
ALTER TABLE log_head ADD COLUMN former_epochs text[] NOT NULL DEFAULT '{}';

-- These take other arguments now.
DROP FUNCTION IF EXISTS join_nodes(text, text, double precision),
    claim_chunks(bigint, bigint, bigint, bigint, boolean),
    claim_retrying(bigint, bigint, bigint, bigint),
    reclaim_chunks(bigint, bigint, bigint, bigint),
    split_fanouts(bigint, bigint, bigint, bigint),
    open_retry(jsonb), flush_deliveries(jsonb);
