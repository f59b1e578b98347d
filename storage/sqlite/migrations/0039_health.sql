-- How feeds and subscriptions are, in a word, so that lists select by it and order by
-- since when. The engine writes how it went; what follows from the state is generated
-- (storage.records.FeedHealth, SubscriptionHealth).
ALTER TABLE feeds ADD COLUMN condition TEXT NOT NULL DEFAULT 'ok';
ALTER TABLE feeds ADD COLUMN condition_since INTEGER;   -- NULL: since it was added
ALTER TABLE feeds ADD COLUMN turned_at INTEGER;         -- when its state last changed
ALTER TABLE feeds ADD COLUMN health TEXT AS (
    CASE state WHEN 'active' THEN condition WHEN 'dead' THEN 'gone' ELSE state END
) VIRTUAL;
ALTER TABLE feeds ADD COLUMN health_since INTEGER AS (coalesce(
    CASE state WHEN 'active' THEN condition_since WHEN 'removed' THEN removed_at
        ELSE turned_at END, created_at)
) VIRTUAL;

UPDATE feeds SET condition = 'failing', condition_since = CAST(round(
    (julianday(json_extract(CAST(polling AS TEXT), '$.failing_since')) - 2440587.5)
    * 86400000) AS INTEGER)
WHERE polling <> x'' AND json_extract(CAST(polling AS TEXT), '$.failures') > 0;

-- Each order of a list, for all feeds of a health and for those of a section; ids follow
-- by themselves, and only so are pairs of a key and an id looked up.
CREATE INDEX feeds_by_health ON feeds (health);
CREATE INDEX feeds_by_health_url ON feeds (health, url);
CREATE INDEX feeds_by_health_since ON feeds (health, health_since);
CREATE INDEX feeds_by_section ON feeds (health, section);
CREATE INDEX feeds_by_section_url ON feeds (health, section, url);
CREATE INDEX feeds_by_section_since ON feeds (health, section, health_since);

CREATE TABLE feed_counts (
    health TEXT NOT NULL,
    section TEXT NOT NULL,
    total INTEGER NOT NULL,
    PRIMARY KEY (health, section)
) STRICT, WITHOUT ROWID;

INSERT INTO feed_counts SELECT health, section, count(*) FROM feeds GROUP BY 1, 2;

CREATE TRIGGER feed_counted AFTER INSERT ON feeds
BEGIN
    INSERT INTO feed_counts VALUES (NEW.health, NEW.section, 1)
        ON CONFLICT (health, section) DO UPDATE SET total = total + 1;
END;

CREATE TRIGGER feed_counted_anew AFTER UPDATE OF state, condition, section ON feeds
WHEN (NEW.health, NEW.section) <> (OLD.health, OLD.section)
BEGIN
    UPDATE feed_counts SET total = total - 1
        WHERE health = OLD.health AND section = OLD.section;
    DELETE FROM feed_counts
        WHERE health = OLD.health AND section = OLD.section AND total = 0;
    INSERT INTO feed_counts VALUES (NEW.health, NEW.section, 1)
        ON CONFLICT (health, section) DO UPDATE SET total = total + 1;
END;

CREATE TRIGGER feed_not_counted AFTER DELETE ON feeds
BEGIN
    UPDATE feed_counts SET total = total - 1
        WHERE health = OLD.health AND section = OLD.section;
    DELETE FROM feed_counts
        WHERE health = OLD.health AND section = OLD.section AND total = 0;
END;

-- What parts of URLs and titles are looked up in: which texts have a trigram.
CREATE VIRTUAL TABLE feed_texts USING fts5(
    text, content = '', detail = none, tokenize = trigram
);

INSERT INTO feed_texts (rowid, text) SELECT id, url || ' ' || title FROM feeds;

CREATE TRIGGER feed_text_added AFTER INSERT ON feeds
BEGIN
    INSERT INTO feed_texts (rowid, text) VALUES (NEW.id, NEW.url || ' ' || NEW.title);
END;

CREATE TRIGGER feed_text_changed AFTER UPDATE OF url, title ON feeds
WHEN (NEW.url, NEW.title) <> (OLD.url, OLD.title)
BEGIN
    INSERT INTO feed_texts (feed_texts, rowid, text)
        VALUES ('delete', OLD.id, OLD.url || ' ' || OLD.title);
    INSERT INTO feed_texts (rowid, text) VALUES (NEW.id, NEW.url || ' ' || NEW.title);
END;

CREATE TRIGGER feed_text_removed AFTER DELETE ON feeds
BEGIN
    INSERT INTO feed_texts (feed_texts, rowid, text)
        VALUES ('delete', OLD.id, OLD.url || ' ' || OLD.title);
END;

DROP VIEW stored_feeds;

CREATE VIEW stored_feeds AS
SELECT f.id, f.url, f.state, f.private, f.section, f.title, f.format, s.next_fetch,
    f.created_at, f.removed_at, f.polling, f.credentials, f.condition,
    f.condition_since, f.turned_at, f.keeps_document, f.subscribers
FROM feeds f CROSS JOIN schedule s ON s.feed_id = f.id;

-- Of subscriptions the engine keeps it with what comes of their deliveries.
ALTER TABLE subscriptions ADD COLUMN condition TEXT NOT NULL DEFAULT 'ok';
ALTER TABLE subscriptions ADD COLUMN condition_since INTEGER;   -- NULL: since it began
ALTER TABLE subscriptions ADD COLUMN failure TEXT NOT NULL DEFAULT '';
ALTER TABLE subscriptions ADD COLUMN paused_at INTEGER;         -- NULL: it is not
ALTER TABLE subscriptions ADD COLUMN health TEXT AS (
    CASE WHEN state IN ('ending', 'ended') THEN iif(condition = 'gone', 'gone', 'ended')
        WHEN state = 'pending' THEN 'pending'
        WHEN paused_at IS NOT NULL THEN 'paused' ELSE condition END
) VIRTUAL;
ALTER TABLE subscriptions ADD COLUMN health_since INTEGER AS (coalesce(
    CASE WHEN state IN ('ending', 'ended') THEN ended_at
        ELSE coalesce(paused_at, condition_since) END, created_at)
) VIRTUAL;

UPDATE subscriptions SET condition = 'gone'
WHERE state = 'ended' AND ended_reason = 'the callback answered 410 Gone';

UPDATE subscriptions AS s SET failure = g.last_error, condition_since = g.failing_since,
    condition = iif(g.attempts > 0 OR s.exhausted, 'failing', 'slow')
FROM stragglers g WHERE g.subscription_id = s.id;

UPDATE subscriptions AS s SET condition = 'failing', (failure, condition_since) =
    (SELECT reason, at FROM dead WHERE subscription_id = s.id ORDER BY id DESC LIMIT 1)
WHERE s.exhausted AND s.condition = 'ok' AND s.state = 'active'
    AND EXISTS (SELECT 1 FROM dead WHERE subscription_id = s.id);

CREATE INDEX subscriptions_unwell ON subscriptions (health) WHERE health <> 'ok';
CREATE INDEX subscriptions_by_health_since ON subscriptions (health, health_since);
