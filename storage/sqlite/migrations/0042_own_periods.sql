-- How often a feed is polled, in seconds, if that was set for it; 0: as it is planned.
ALTER TABLE feeds ADD COLUMN own_period REAL NOT NULL DEFAULT 0;

DROP VIEW stored_feeds;

CREATE VIEW stored_feeds AS
SELECT f.id, f.url, f.state, f.private, f.section, f.title, f.format, s.next_fetch,
    f.created_at, f.removed_at, f.polling, f.credentials, f.condition,
    f.condition_since, f.turned_at, f.own_period, f.keeps_document, f.subscribers
FROM feeds f CROSS JOIN schedule s ON s.feed_id = f.id;

-- A feed that is found at another URL has other pages of its own.
CREATE TRIGGER page_feed_respelled AFTER UPDATE OF url ON feeds
WHEN NEW.url <> OLD.url
BEGIN
    INSERT INTO page_feeds VALUES (NEW.id, 1)
        ON CONFLICT (feed_id) DO UPDATE SET is_moved = 1;
END;
