-- Entries without a link have pages of this hub whose addresses are paths now.
INSERT OR IGNORE INTO page_news
    SELECT m.entry_id FROM page_entries m CROSS JOIN pages p ON p.id = m.page_id
    WHERE p.url LIKE '%/topics/%.json#%';
