-- Whose page a URL is, and what each section shows of it.

-- How near the entry's feed is to the page's host (hub.collections.judging); the
-- smallest goes first.
ALTER TABLE page_entries ADD COLUMN rank INTEGER NOT NULL DEFAULT 0;

-- The latest "modified" of a URL in any section: none may be published before it again.
ALTER TABLE pages ADD COLUMN published INTEGER NOT NULL DEFAULT 0;

UPDATE pages SET published = modified;

-- What a section shows under a URL: of the entries of its own feeds alone. A row stays
-- when the section has none any more (entry_id 0).
CREATE TABLE section_pages (
    section TEXT NOT NULL,
    page_id INTEGER NOT NULL,
    entry_id INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    modified INTEGER NOT NULL,      -- in seconds
    change INTEGER NOT NULL,        -- counted with those of pages
    PRIMARY KEY (section, page_id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX section_pages_by_change ON section_pages (section, change);

-- How often something was withdrawn that a section showed: what was built of it before
-- may have that text. All that was built by former rules is taken back.
ALTER TABLE page_sections ADD COLUMN withdrawals INTEGER NOT NULL DEFAULT 0;
ALTER TABLE page_sections DROP COLUMN withdrawn;

UPDATE page_sections SET withdrawals = 1 WHERE EXISTS (SELECT 1 FROM pages);

-- Sections that have ever shown a feed's text.
CREATE TABLE page_shown (
    feed_id INTEGER NOT NULL,
    section TEXT NOT NULL,
    PRIMARY KEY (feed_id, section)
) STRICT, WITHOUT ROWID;

-- What of a feed its pages depend on, as it was judged: one text, only compared.
CREATE TABLE page_origins (
    feed_id INTEGER PRIMARY KEY,
    origin TEXT NOT NULL
) STRICT;

DROP TABLE page_unlisted;

INSERT OR IGNORE INTO page_news SELECT id FROM entries;
INSERT INTO page_feeds SELECT id, 0 FROM feeds WHERE TRUE
    ON CONFLICT (feed_id) DO NOTHING;

-- A page depends on where its feed really is.
CREATE TRIGGER page_feed_redirected AFTER UPDATE OF fetch_url ON feeds
WHEN NEW.fetch_url <> OLD.fetch_url
BEGIN
    INSERT INTO page_feeds VALUES (NEW.id, 0) ON CONFLICT (feed_id) DO NOTHING;
END;

CREATE TRIGGER page_feed_listed AFTER UPDATE OF unlisted ON feeds
WHEN NEW.unlisted <> OLD.unlisted
BEGIN
    INSERT INTO page_feeds VALUES (NEW.id, 1)
        ON CONFLICT (feed_id) DO UPDATE SET is_moved = 1;
END;

-- Withdrawals count in the very transaction that makes them, before anything is judged.
CREATE TRIGGER page_feed_hidden AFTER UPDATE OF private, unlisted, state ON feeds
WHEN (NEW.private OR NEW.unlisted OR NEW.state = 'removed')
    AND NOT (OLD.private OR OLD.unlisted OR OLD.state = 'removed')
BEGIN
    UPDATE page_sections SET withdrawals = withdrawals + 1
    WHERE name IN (SELECT section FROM page_shown WHERE feed_id = NEW.id);
END;

CREATE TRIGGER page_feed_left_section AFTER UPDATE OF section ON feeds
WHEN NEW.section <> OLD.section
BEGIN
    UPDATE page_sections SET withdrawals = withdrawals + 1
    WHERE name <> '' AND name IN
        (SELECT section FROM page_shown WHERE feed_id = NEW.id);
END;

CREATE TRIGGER page_entry_hidden AFTER UPDATE OF deleted, unlisted ON entries
WHEN (NEW.deleted OR NEW.unlisted) AND NOT (OLD.deleted OR OLD.unlisted)
BEGIN
    UPDATE page_sections SET withdrawals = withdrawals + 1
    WHERE name IN (SELECT section FROM page_shown WHERE feed_id = NEW.feed_id);
END;

-- Of an entry that was not kept any longer.
CREATE TRIGGER page_entry_deleted_late AFTER INSERT ON entries
WHEN NEW.deleted
BEGIN
    UPDATE page_sections SET withdrawals = withdrawals + 1
    WHERE name IN (SELECT section FROM page_shown WHERE feed_id = NEW.feed_id);
END;
