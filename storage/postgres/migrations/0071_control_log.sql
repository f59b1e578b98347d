-- oldest program 71
-- What one node decided and all have to heed, in the order in which it was committed.
CREATE TABLE control (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    ids bigint[] NOT NULL,              -- of subscriptions, feeds or tokens
    number bigint NOT NULL,             -- the log's end, or the version of the queries
    query text NOT NULL                 -- that was added
);

-- This returns more now.
DROP FUNCTION IF EXISTS join_nodes(text, text, double precision, boolean);
