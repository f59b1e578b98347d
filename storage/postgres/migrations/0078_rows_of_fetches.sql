-- What fetches found comes as rows, which the server need not parse.

-- What a fetch changes of its feed.
CREATE TYPE fetch_commit AS (
    feed_id bigint,
    at bigint,
    next_fetch bigint,
    pace smallint,
    fresh_for int,
    period double precision,
    price double precision,
    velocity double precision,
    unchanged int,
    unlisted boolean,
    needs_body boolean,     -- it has news of a document that it does not bring
    queries bigint,         -- the version of the queries that it was matched with
    has_matches boolean,
    has_more boolean,       -- of what is below, something from `slices` to `more`
    version bigint,         -- that it was decided on; NULL: of any
    last_fetch bigint,      -- in microseconds
    outcome bytea,
    poll bytea,
    cold bytea,
    fetch_url text,
    seen bytea,
    slices bytea,
    head bytea,
    inventory bytea,
    raw_type text,
    raw bytea,
    body_type text,
    body bytea,
    document int,           -- the number of its last record that is news of the document
    more jsonb,             -- what few fetches change
    place int,              -- in its call; one of each row that belongs to it
    first int               -- how many records of its call come before its own
);

-- An entry that a fetch stores, or that a record names.
CREATE TYPE fetch_entry AS (
    feed_id bigint,
    at bigint,
    record int,             -- the number of the record that names it; 0: none does
    number int,             -- among the entries of that record
    is_fresh boolean,
    is_unlisted boolean,
    key_hash bytea,
    key text,
    body bytea,
    published bigint,
    place int,
    first int
);

-- A record that it appends.
CREATE TYPE fetch_record AS (
    feed_id bigint,         -- of a track query, if that matches
    at bigint,
    news bigint,
    is_superseded boolean,
    kind text,
    status bytea,
    source bigint,          -- the feed that a track query matches
    place int,
    first int
);

-- Of a call with news: the log's end before it, and by the place of each commit its
-- feed's new version, and how many records it has; NULL: as many as were given.
ALTER TABLE lanes ADD COLUMN before bigint, ADD COLUMN versions int[],
    ADD COLUMN counts int[];
