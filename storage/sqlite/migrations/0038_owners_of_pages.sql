-- Who has a right to a page (hub.publishing.page_visibility.owner_of): a section shows an entry only
-- where none of a smaller owner has its URL, in whatever section.
ALTER TABLE page_entries ADD COLUMN owner INTEGER NOT NULL DEFAULT 0;

-- Above 48 bits of a rank stands how near the feed is to the page's host, from -5 to 0.
UPDATE page_entries SET owner =
    CASE WHEN rank >> 48 <= -4 THEN 0 WHEN rank >> 48 = -3 THEN 1
        WHEN rank >> 48 < 0 THEN 2 ELSE 3 END;

-- Of the entry that is shown; 9 until the page is judged for the first time since this version.
ALTER TABLE pages ADD COLUMN owner INTEGER NOT NULL DEFAULT 9;

-- What sections show of pages to which others have more right is judged again.
INSERT OR IGNORE INTO page_news
    SELECT s.entry_id FROM section_pages s
    CROSS JOIN page_entries m ON m.entry_id = s.entry_id
    WHERE s.entry_id > 0 AND m.owner > (SELECT min(owner) FROM page_entries
        WHERE page_id = s.page_id);
