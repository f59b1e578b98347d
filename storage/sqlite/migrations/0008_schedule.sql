-- When feeds are fetched next. Nothing of a feed changes as often, so it stays apart
-- from what is large, and who moves it writes a few bytes and one index of integers.
CREATE TABLE schedule (
    feed_id INTEGER PRIMARY KEY,
    next_fetch INTEGER NOT NULL,
    is_active INTEGER NOT NULL      -- as the feed's state has it; kept by a trigger
) STRICT;

INSERT INTO schedule SELECT id, next_fetch, state = 'active' FROM feeds;

-- In the order of (next_fetch, feed_id).
CREATE INDEX schedule_due ON schedule (next_fetch) WHERE is_active = 1;

DROP VIEW stored_feeds;
DROP INDEX feeds_due;
ALTER TABLE feeds DROP COLUMN next_fetch;

-- What is read of a feed, in the order that feed_rows.py expects.
CREATE VIEW stored_feeds AS
SELECT f.id, f.url, f.state, f.private, f.section, f.title, f.format, s.next_fetch,
    f.created_at, f.removed_at, f.polling, f.credentials, f.as_is_subscribers,
    f.subscribers
FROM feeds f CROSS JOIN schedule s ON s.feed_id = f.id;

CREATE TRIGGER feed_stopped_or_resumed AFTER UPDATE OF state ON feeds
WHEN (NEW.state = 'active') <> (OLD.state = 'active')
BEGIN
    UPDATE schedule SET is_active = (NEW.state = 'active') WHERE feed_id = NEW.id;
END;
