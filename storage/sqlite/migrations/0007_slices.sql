-- What the entries of a feed's last documents were read from, as hashes: those that come
-- again byte for byte need not be read. A feed that has none is read whole.
CREATE TABLE slices (
    feed_id INTEGER PRIMARY KEY,
    slices BLOB NOT NULL
) STRICT;
