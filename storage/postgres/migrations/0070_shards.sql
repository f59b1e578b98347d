-- oldest program 70
-- Which node does what is due. Nobody's, 0: until a member takes it.
CREATE TABLE shards (
    kind text COLLATE "C" NOT NULL,     -- a storage.records.ShardKind
    id smallint NOT NULL,
    incarnation bigint NOT NULL DEFAULT 0,
    given_up_at timestamptz,            -- from then on its owner begins nothing in it
    PRIMARY KEY (kind, id)
) WITH (fillfactor = 50);
INSERT INTO shards (kind, id)
    SELECT kind, id FROM unnest(ARRAY['feeds', 'callbacks']) kind, generate_series(0, 255) id
    UNION ALL SELECT 'leader', 0;

-- These return more now.
DROP FUNCTION IF EXISTS renew_node(bigint, double precision, text, text, bigint),
    join_nodes(text, text, double precision, boolean);
