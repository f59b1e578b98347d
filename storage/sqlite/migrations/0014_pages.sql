-- Pages: what everybody may read, by URL. A row stays when its page is withdrawn
-- (entry_id 0), so that "modified" never goes back should it return.
CREATE TABLE pages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    url_hash BLOB NOT NULL UNIQUE,
    url TEXT NOT NULL,
    entry_id INTEGER NOT NULL,      -- that it shows
    revision INTEGER NOT NULL,
    modified INTEGER NOT NULL,      -- in seconds, as it was last published
    change INTEGER NOT NULL,        -- numbers the changes of all pages
    changed_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX pages_by_change ON pages (change);

-- Which entries have a page's URL; it shows the newest of them.
CREATE TABLE page_entries (
    entry_id INTEGER PRIMARY KEY,
    page_id INTEGER NOT NULL,
    section TEXT NOT NULL,
    dated INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    stated INTEGER NOT NULL         -- when the entry says it changed, in seconds
) STRICT;

CREATE INDEX page_entries_by_page ON page_entries (page_id, section);
CREATE INDEX page_entries_by_section ON page_entries (section, page_id);

-- Sections that have or had pages; "" has all of them.
CREATE TABLE page_sections (
    name TEXT PRIMARY KEY,
    withdrawn INTEGER NOT NULL      -- the last change that took a page from it
) STRICT, WITHOUT ROWID;

INSERT INTO page_sections VALUES ('', 0);

-- Entries that are still to be judged.
CREATE TABLE page_news (
    entry_id INTEGER PRIMARY KEY
) STRICT;

INSERT INTO page_news SELECT id FROM entries;

-- Feeds that are: is_moved if all their entries must be judged again; else their head
-- changed, which may keep them out of lists.
CREATE TABLE page_feeds (
    feed_id INTEGER PRIMARY KEY,
    is_moved INTEGER NOT NULL
) STRICT;

-- Feeds whose head, when it was judged, kept them out of lists.
CREATE TABLE page_unlisted (
    feed_id INTEGER PRIMARY KEY
) STRICT;

INSERT INTO page_feeds SELECT id, 0 FROM feeds;

CREATE TRIGGER page_entry_added AFTER INSERT ON entries
BEGIN
    INSERT INTO page_news VALUES (NEW.id) ON CONFLICT (entry_id) DO NOTHING;
END;

CREATE TRIGGER page_entry_changed AFTER UPDATE OF revision ON entries
BEGIN
    INSERT INTO page_news VALUES (NEW.id) ON CONFLICT (entry_id) DO NOTHING;
END;

CREATE TRIGGER page_entry_dropped AFTER DELETE ON entries
BEGIN
    INSERT INTO page_news VALUES (OLD.id) ON CONFLICT (entry_id) DO NOTHING;
END;

CREATE TRIGGER page_feed_moved AFTER UPDATE OF private, section, state ON feeds
WHEN NEW.private <> OLD.private OR NEW.section <> OLD.section
    OR (NEW.state = 'removed') <> (OLD.state = 'removed')
BEGIN
    INSERT INTO page_feeds VALUES (NEW.id, 1)
        ON CONFLICT (feed_id) DO UPDATE SET is_moved = 1;
END;

CREATE TRIGGER page_head_added AFTER INSERT ON feed_heads
BEGIN
    INSERT INTO page_feeds VALUES (NEW.feed_id, 0) ON CONFLICT (feed_id) DO NOTHING;
END;

CREATE TRIGGER page_head_changed AFTER UPDATE OF head ON feed_heads
BEGIN
    INSERT INTO page_feeds VALUES (NEW.feed_id, 0) ON CONFLICT (feed_id) DO NOTHING;
END;
