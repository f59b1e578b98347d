-- How many subscribers a feed has, apart from its row: who subscribes does not rewrite what
-- fetches rewrite, nor the other way round. Health and category are those of the feed, for
-- lists in the order of subscribers; they change seldom.
CREATE TABLE feed_audience (
    feed_id INTEGER PRIMARY KEY,
    subscribers INTEGER NOT NULL DEFAULT 0,        -- active ones; kept by triggers
    as_is INTEGER NOT NULL DEFAULT 0,
    by_topic INTEGER NOT NULL DEFAULT 0,
    health TEXT NOT NULL,
    section TEXT NOT NULL
) STRICT;

INSERT INTO feed_audience
SELECT id, subscribers, as_is_subscribers, by_topic_subscribers, health, section
FROM feeds ORDER BY id;

CREATE INDEX audience_by_health ON feed_audience (health, subscribers);
CREATE INDEX audience_by_section ON feed_audience (health, section, subscribers);

CREATE TRIGGER feed_audience_added AFTER INSERT ON feeds
BEGIN
    INSERT INTO feed_audience (feed_id, health, section)
        VALUES (NEW.id, NEW.health, NEW.section);
END;

CREATE TRIGGER feed_audience_moved AFTER UPDATE OF state, condition, section ON feeds
WHEN (NEW.health, NEW.section) <> (OLD.health, OLD.section)
BEGIN
    UPDATE feed_audience SET health = NEW.health, section = NEW.section
        WHERE feed_id = NEW.id;
END;

DROP TRIGGER subscription_added;
DROP TRIGGER subscription_changed;
DROP TRIGGER subscription_deleted;

CREATE TRIGGER subscription_added AFTER INSERT ON subscriptions
WHEN NEW.state = 'active'
BEGIN
    UPDATE feed_audience SET
        subscribers = subscribers + 1,
        as_is = as_is + (NEW.format = 'as-is'),
        by_topic = by_topic + (NEW.format = 'by-topic')
    WHERE feed_id = NEW.feed_id;
END;

-- Adds before it subtracts, so that a count does not pass through zero.
CREATE TRIGGER subscription_changed
AFTER UPDATE OF state, format, feed_id ON subscriptions
WHEN (NEW.state = 'active', NEW.format, NEW.feed_id)
    <> (OLD.state = 'active', OLD.format, OLD.feed_id)
BEGIN
    UPDATE feed_audience SET
        subscribers = subscribers + 1,
        as_is = as_is + (NEW.format = 'as-is'),
        by_topic = by_topic + (NEW.format = 'by-topic')
    WHERE feed_id = NEW.feed_id AND NEW.state = 'active';
    UPDATE feed_audience SET
        subscribers = subscribers - 1,
        as_is = as_is - (OLD.format = 'as-is'),
        by_topic = by_topic - (OLD.format = 'by-topic')
    WHERE feed_id = OLD.feed_id AND OLD.state = 'active';
END;

CREATE TRIGGER subscription_deleted AFTER DELETE ON subscriptions
WHEN OLD.state = 'active'
BEGIN
    UPDATE feed_audience SET
        subscribers = subscribers - 1,
        as_is = as_is - (OLD.format = 'as-is'),
        by_topic = by_topic - (OLD.format = 'by-topic')
    WHERE feed_id = OLD.feed_id;
END;

-- The document of a feed is kept for those who are sent it as it is, and, while the topic
-- is no feed, for those who asked for no format.
DROP TRIGGER body_unwanted;

CREATE TRIGGER body_unwanted AFTER UPDATE OF as_is, by_topic ON feed_audience
WHEN NEW.as_is = 0 AND (NEW.as_is < OLD.as_is OR NEW.by_topic < OLD.by_topic)
BEGIN
    DELETE FROM bodies WHERE feed_id = NEW.feed_id AND (NEW.by_topic = 0
        OR (SELECT format FROM feeds WHERE id = NEW.feed_id) NOT IN ('', 'part'));
END;

CREATE TRIGGER body_of_feed AFTER UPDATE OF format ON feeds
WHEN OLD.format IN ('', 'part') AND NEW.format NOT IN ('', 'part')
BEGIN
    DELETE FROM bodies WHERE feed_id = NEW.id
        AND (SELECT as_is FROM feed_audience WHERE feed_id = NEW.id) = 0;
END;

DROP VIEW stored_feeds;
DROP INDEX feeds_by_health_subscribers;
DROP INDEX feeds_by_section_subscribers;
ALTER TABLE feeds DROP COLUMN keeps_document;
ALTER TABLE feeds DROP COLUMN subscribers;
ALTER TABLE feeds DROP COLUMN as_is_subscribers;
ALTER TABLE feeds DROP COLUMN by_topic_subscribers;

CREATE VIEW stored_feeds AS
SELECT f.id, f.url, f.state, f.private, f.section, f.title, f.format, s.next_fetch,
    f.created_at, f.removed_at,
    CASE x'' WHEN h.polling THEN x'' WHEN f.polling THEN h.polling ELSE CAST(
        substr(f.polling, 1, length(f.polling) - 1) || ',' || substr(h.polling, 2)
        AS BLOB) END AS polling,
    f.credentials, f.condition, f.condition_since, f.turned_at, f.own_period,
    a.as_is > 0 OR (a.by_topic > 0 AND f.format IN ('', 'part')) AS keeps_document,
    a.subscribers, f.version
FROM feeds f CROSS JOIN schedule s ON s.feed_id = f.id
CROSS JOIN feed_hot h ON h.feed_id = f.id
CROSS JOIN feed_audience a ON a.feed_id = f.id;
