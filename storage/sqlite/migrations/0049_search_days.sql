-- Which entries the index of words covers: of so many days, by their dates; 0: it is not
-- kept. Entries below `unread` are yet to be looked at. `forgotten` documents may still
-- take room in the index, until all of it is merged.
ALTER TABLE search_state ADD COLUMN days REAL NOT NULL DEFAULT 0;
ALTER TABLE search_state ADD COLUMN unread INTEGER NOT NULL DEFAULT 0;
ALTER TABLE search_state ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0;

-- An index is made anew: its ids have half the bytes, and `text` has each word once. The
-- former one is removed little by little (storage.sqlite.search), as whenever the
-- index is no longer kept.
DROP TRIGGER entry_gone;
ALTER TABLE search RENAME TO former_search;
ALTER TABLE searched RENAME TO former_searched;
DELETE FROM search_queue;

CREATE TABLE searched (
    entry_id INTEGER PRIMARY KEY,
    docid INTEGER NOT NULL UNIQUE,
    text BLOB NOT NULL
) STRICT;

CREATE VIRTUAL TABLE search USING fts5 (
    words, places, content = '', columnsize = 0, tokenize = "ascii tokenchars '_'"
);

-- Segments are merged when the hub says so, in short transactions.
INSERT INTO search (search, rank) VALUES ('automerge', 0);
INSERT INTO search (search, rank) VALUES ('crisismerge', 1000);

CREATE TRIGGER entry_gone AFTER DELETE ON entries
WHEN EXISTS (SELECT 1 FROM searched WHERE entry_id = OLD.id)
BEGIN
    INSERT OR IGNORE INTO search_queue VALUES (OLD.id);
END;
