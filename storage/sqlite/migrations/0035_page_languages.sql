-- The language that a page is published in; NULL until it is judged. One that an entry
-- took over from its feed follows the feed, without a change of the entry.
ALTER TABLE page_entries ADD COLUMN language TEXT;
ALTER TABLE page_entries ADD COLUMN inherits_language INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pages ADD COLUMN language TEXT;
ALTER TABLE section_pages ADD COLUMN language TEXT;

INSERT OR IGNORE INTO page_news SELECT id FROM entries;
