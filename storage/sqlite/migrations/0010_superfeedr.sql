-- What accounts can list: their active subscriptions; not those of the open hub, which
-- nobody lists and which are the many. Kept by triggers.
CREATE TABLE listings (
    subscription_id INTEGER PRIMARY KEY,
    account_id INTEGER NOT NULL,
    topic_id INTEGER NOT NULL,
    topic_host TEXT NOT NULL,
    callback_hash BLOB NOT NULL,
    callback_host TEXT NOT NULL,
    format TEXT NOT NULL
) STRICT;

CREATE INDEX listings_by_account ON listings (account_id, subscription_id);
CREATE INDEX listings_by_topic ON listings (account_id, topic_id, subscription_id);
CREATE INDEX listings_by_topic_host
    ON listings (account_id, topic_host, subscription_id);
CREATE INDEX listings_by_callback
    ON listings (account_id, callback_hash, subscription_id);
CREATE INDEX listings_by_callback_host
    ON listings (account_id, callback_host, subscription_id);
CREATE INDEX listings_by_format ON listings (account_id, format, subscription_id);

CREATE TABLE listing_totals (
    account_id INTEGER NOT NULL,
    format TEXT NOT NULL,
    total INTEGER NOT NULL,
    PRIMARY KEY (account_id, format)
) STRICT, WITHOUT ROWID;

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
    s.format
FROM (SELECT *, substr(callback, instr(callback, '://') + 3) || '/' AS rest
        FROM subscriptions) s
JOIN (SELECT id, substr(url, instr(url, '://') + 3) || '/' AS rest
        FROM topics) t ON t.id = s.topic_id
WHERE s.account_id <> 1 AND s.state = 'active';

CREATE TRIGGER listing_added AFTER INSERT ON listings
BEGIN
    INSERT INTO listing_totals VALUES (NEW.account_id, NEW.format, 1)
        ON CONFLICT (account_id, format) DO UPDATE SET total = total + 1;
END;

CREATE TRIGGER listing_removed AFTER DELETE ON listings
BEGIN
    UPDATE listing_totals SET total = total - 1
    WHERE account_id = OLD.account_id AND format = OLD.format;
END;

INSERT INTO listings SELECT * FROM listable;

CREATE TRIGGER subscription_listed AFTER INSERT ON subscriptions
WHEN NEW.account_id <> 1 AND NEW.state = 'active'
BEGIN
    INSERT INTO listings SELECT * FROM listable WHERE id = NEW.id;
END;

CREATE TRIGGER subscription_listed_anew
AFTER UPDATE OF state, topic_id, callback, format ON subscriptions
WHEN NEW.account_id <> 1
    AND (NEW.state, NEW.topic_id, NEW.callback, NEW.format)
        <> (OLD.state, OLD.topic_id, OLD.callback, OLD.format)
BEGIN
    DELETE FROM listings WHERE subscription_id = NEW.id;
    INSERT INTO listings SELECT * FROM listable WHERE id = NEW.id;
END;

CREATE TRIGGER subscription_unlisted AFTER DELETE ON subscriptions
WHEN OLD.account_id <> 1
BEGIN
    DELETE FROM listings WHERE subscription_id = OLD.id;
END;

-- Subscriptions that get a digest of their feed once a day.
CREATE TABLE digests (
    subscription_id INTEGER PRIMARY KEY,
    due INTEGER NOT NULL
) STRICT;

CREATE INDEX digests_due ON digests (due);

CREATE TRIGGER digest_ended AFTER UPDATE OF state ON subscriptions
WHEN NEW.state IN ('ending', 'ended')
BEGIN
    DELETE FROM digests WHERE subscription_id = NEW.id;
END;

-- How many notifications an account was sent; what it is told counts down from there.
ALTER TABLE accounts ADD COLUMN notified INTEGER NOT NULL DEFAULT 0;

-- What publishers sign the content of their pings with: encrypted, "" when there is none.
ALTER TABLE feeds ADD COLUMN publish_secret TEXT NOT NULL DEFAULT '';
