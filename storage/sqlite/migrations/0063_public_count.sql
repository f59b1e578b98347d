-- How many public feeds are listed, counted as they come and go: the list may be long.
CREATE TABLE public_count (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    total INTEGER NOT NULL
) STRICT;

INSERT INTO public_count SELECT 1, count(*) FROM feeds
    WHERE NOT private AND NOT unlisted AND state NOT IN ('removed', 'track');

CREATE TRIGGER public_feed_added AFTER INSERT ON feeds
WHEN NOT NEW.private AND NOT NEW.unlisted AND NEW.state NOT IN ('removed', 'track')
BEGIN
    UPDATE public_count SET total = total + 1;
END;

CREATE TRIGGER public_feed_changed AFTER UPDATE OF private, unlisted, state ON feeds
WHEN (NOT NEW.private AND NOT NEW.unlisted AND NEW.state NOT IN ('removed', 'track'))
    <> (NOT OLD.private AND NOT OLD.unlisted AND OLD.state NOT IN ('removed', 'track'))
BEGIN
    UPDATE public_count SET total = total
        + iif(NEW.private OR NEW.unlisted OR NEW.state IN ('removed', 'track'), -1, 1);
END;

CREATE TRIGGER public_feed_purged AFTER DELETE ON feeds
WHEN NOT OLD.private AND NOT OLD.unlisted AND OLD.state NOT IN ('removed', 'track')
BEGIN
    UPDATE public_count SET total = total - 1;
END;
