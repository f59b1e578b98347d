-- Who asks for no format gets what suits the topic, and that is only known when there is
-- something to send: format 'by-topic'. The document of a topic is kept for it, too,
-- while the topic is no feed.
ALTER TABLE feeds ADD COLUMN by_topic_subscribers INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feeds ADD COLUMN keeps_document INTEGER AS (
    as_is_subscribers > 0 OR (by_topic_subscribers > 0 AND format IN ('', 'part'))
) VIRTUAL;

DROP VIEW stored_feeds;

-- What is read of a feed, in the order that feed_rows.py expects.
CREATE VIEW stored_feeds AS
SELECT f.id, f.url, f.state, f.private, f.section, f.title, f.format, s.next_fetch,
    f.created_at, f.removed_at, f.polling, f.credentials, f.keeps_document,
    f.subscribers
FROM feeds f CROSS JOIN schedule s ON s.feed_id = f.id;

DROP TRIGGER subscription_added;
DROP TRIGGER subscription_changed;
DROP TRIGGER subscription_deleted;
DROP TRIGGER body_unwanted;

CREATE TRIGGER subscription_added AFTER INSERT ON subscriptions
WHEN NEW.state = 'active'
BEGIN
    UPDATE feeds SET
        subscribers = subscribers + 1,
        as_is_subscribers = as_is_subscribers + (NEW.format = 'as-is'),
        by_topic_subscribers = by_topic_subscribers + (NEW.format = 'by-topic')
    WHERE id = NEW.feed_id;
END;

-- Adds before it subtracts, so that a count does not pass through zero.
CREATE TRIGGER subscription_changed
AFTER UPDATE OF state, format, feed_id ON subscriptions
BEGIN
    UPDATE feeds SET
        subscribers = subscribers + 1,
        as_is_subscribers = as_is_subscribers + (NEW.format = 'as-is'),
        by_topic_subscribers = by_topic_subscribers + (NEW.format = 'by-topic')
    WHERE id = NEW.feed_id AND NEW.state = 'active';
    UPDATE feeds SET
        subscribers = subscribers - 1,
        as_is_subscribers = as_is_subscribers - (OLD.format = 'as-is'),
        by_topic_subscribers = by_topic_subscribers - (OLD.format = 'by-topic')
    WHERE id = OLD.feed_id AND OLD.state = 'active';
END;

CREATE TRIGGER subscription_deleted AFTER DELETE ON subscriptions
WHEN OLD.state = 'active'
BEGIN
    UPDATE feeds SET
        subscribers = subscribers - 1,
        as_is_subscribers = as_is_subscribers - (OLD.format = 'as-is'),
        by_topic_subscribers = by_topic_subscribers - (OLD.format = 'by-topic')
    WHERE id = OLD.feed_id;
END;

CREATE TRIGGER body_unwanted
AFTER UPDATE OF as_is_subscribers, by_topic_subscribers, format ON feeds
WHEN OLD.keeps_document AND NOT NEW.keeps_document
BEGIN
    DELETE FROM bodies WHERE feed_id = NEW.id;
END;

-- Accounts list 'by-topic' as 'atom', which is what feeds are sent as.
DROP VIEW listable;

-- What follows "://", a slash appended: of an address in brackets, all up to the last.
CREATE VIEW listable AS
SELECT s.id, s.account_id, s.topic_id,
    lower(CASE WHEN t.rest LIKE '[%' THEN substr(t.rest, 1, instr(t.rest, ']'))
        ELSE substr(t.rest, 1, instr(replace(replace(replace(
            t.rest, '?', '/'), '#', '/'), ':', '/'), '/') - 1) END) AS topic_host,
    s.callback_hash,
    lower(CASE WHEN s.rest LIKE '[%' THEN substr(s.rest, 1, instr(s.rest, ']'))
        ELSE substr(s.rest, 1, instr(replace(replace(replace(
            s.rest, '?', '/'), '#', '/'), ':', '/'), '/') - 1) END) AS callback_host,
    iif(s.format = 'by-topic', 'atom', s.format) AS format,
    lower(t.url) AS topic, lower(s.callback) AS callback
FROM (SELECT *, substr(callback, instr(callback, '://') + 3) || '/' AS rest
        FROM subscriptions) s
JOIN (SELECT id, url, substr(url, instr(url, '://') + 3) || '/' AS rest
        FROM topics) t ON t.id = s.topic_id
WHERE s.account_id <> 1 AND s.state = 'active';

-- Whoever asked for no format while a topic was down has 'atom' ever since. Of a topic
-- that has never been read, nobody has been sent anything that this changes; should it
-- be a feed, Atom it stays.
UPDATE subscriptions SET format = 'by-topic'
WHERE format = 'atom' AND feed_id IN (
    SELECT id FROM feeds WHERE format = '' AND state <> 'track');
