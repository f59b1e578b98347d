-- What a list of feeds called a feed that was added from it: its name until it has one
-- of its own.
CREATE TABLE given_names (
    feed_id INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    description TEXT NOT NULL
) STRICT;
