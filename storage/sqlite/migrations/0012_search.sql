-- The words of entries. docid is their date and id in one, the newest the largest, so
-- that matches are found newest first. text is what the index was given, packed: it is
-- what an index without content must be told to forget a document.
CREATE TABLE searched (
    entry_id INTEGER PRIMARY KEY,
    docid INTEGER NOT NULL UNIQUE,
    text BLOB NOT NULL
) STRICT;

-- Words come cut up and folded, in ASCII and beyond, with blanks between them.
CREATE VIRTUAL TABLE search USING fts5 (
    words, places, content = '', columnsize = 0, tokenize = "ascii tokenchars '_'"
);

-- Up to where the log was read for it.
CREATE TABLE search_state (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    position INTEGER NOT NULL
) STRICT;

INSERT INTO search_state SELECT 1, head FROM meta;

-- Entries that the log does not name: stored before there was a search, or gone since.
CREATE TABLE search_queue (
    entry_id INTEGER PRIMARY KEY
) STRICT;

INSERT INTO search_queue SELECT id FROM entries;

CREATE TRIGGER entry_gone AFTER DELETE ON entries
BEGIN
    INSERT OR IGNORE INTO search_queue VALUES (OLD.id);
END;

-- Whether an account subscribes to a feed.
CREATE INDEX subscriptions_by_holder ON subscriptions (account_id, feed_id)
    WHERE state = 'active';
