-- Lists of accounts by number of page, however long they are: how many subscriptions of
-- each selection there are in each block of 4,096 ids, so that a page is found by adding
-- up blocks; and the texts that are searched for parts, with an index of their trigrams.
DROP TRIGGER listing_added;
DROP TRIGGER listing_removed;
DROP TRIGGER subscription_listed;
DROP TRIGGER subscription_listed_anew;
DROP TABLE listing_totals;
DROP VIEW listable;
DELETE FROM listings;

ALTER TABLE listings ADD COLUMN topic TEXT NOT NULL DEFAULT '';     -- in lower case
ALTER TABLE listings ADD COLUMN callback TEXT NOT NULL DEFAULT '';  -- in lower case

CREATE TABLE listing_counts (
    account_id INTEGER NOT NULL,
    kind TEXT NOT NULL,             -- what is selected by; "" for all
    value ANY NOT NULL,
    block INTEGER NOT NULL,         -- of subscriptions: their id / 4096
    total INTEGER NOT NULL,
    PRIMARY KEY (account_id, kind, value, block)
) STRICT, WITHOUT ROWID;

-- An account is three characters of its own, so that it is one trigram.
CREATE VIRTUAL TABLE listing_texts USING fts5(
    topic, callback, account, content = '', detail = column, tokenize = trigram
);

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
    s.format, lower(t.url) AS topic, lower(s.callback) AS callback
FROM (SELECT *, substr(callback, instr(callback, '://') + 3) || '/' AS rest
        FROM subscriptions) s
JOIN (SELECT id, url, substr(url, instr(url, '://') + 3) || '/' AS rest
        FROM topics) t ON t.id = s.topic_id
WHERE s.account_id <> 1 AND s.state = 'active';

CREATE TRIGGER listing_added AFTER INSERT ON listings
BEGIN
    INSERT INTO listing_counts VALUES
        (NEW.account_id, '', '', NEW.subscription_id >> 12, 1),
        (NEW.account_id, 'format', NEW.format, NEW.subscription_id >> 12, 1),
        (NEW.account_id, 'topic_host', NEW.topic_host, NEW.subscription_id >> 12, 1),
        (NEW.account_id, 'callback', NEW.callback_hash, NEW.subscription_id >> 12, 1),
        (NEW.account_id, 'callback_host', NEW.callback_host,
            NEW.subscription_id >> 12, 1)
        ON CONFLICT (account_id, kind, value, block) DO UPDATE SET total = total + 1;
    INSERT INTO listing_texts (rowid, topic, callback, account) VALUES (
        NEW.subscription_id, NEW.topic, NEW.callback, char(
            19968 + (NEW.account_id >> 24), 19968 + (NEW.account_id >> 12 & 4095),
            19968 + (NEW.account_id & 4095)));
END;

CREATE TRIGGER listing_count_ended AFTER UPDATE OF total ON listing_counts
WHEN NEW.total = 0
BEGIN
    DELETE FROM listing_counts WHERE account_id = NEW.account_id
        AND kind = NEW.kind AND value = NEW.value AND block = NEW.block;
END;

CREATE TRIGGER listing_removed AFTER DELETE ON listings
BEGIN
    INSERT INTO listing_counts VALUES
        (OLD.account_id, '', '', OLD.subscription_id >> 12, -1),
        (OLD.account_id, 'format', OLD.format, OLD.subscription_id >> 12, -1),
        (OLD.account_id, 'topic_host', OLD.topic_host, OLD.subscription_id >> 12, -1),
        (OLD.account_id, 'callback', OLD.callback_hash, OLD.subscription_id >> 12, -1),
        (OLD.account_id, 'callback_host', OLD.callback_host,
            OLD.subscription_id >> 12, -1)
        ON CONFLICT (account_id, kind, value, block) DO UPDATE SET total = total - 1;
    INSERT INTO listing_texts (listing_texts, rowid, topic, callback, account)
    VALUES ('delete', OLD.subscription_id, OLD.topic, OLD.callback, char(
        19968 + (OLD.account_id >> 24), 19968 + (OLD.account_id >> 12 & 4095),
        19968 + (OLD.account_id & 4095)));
END;

INSERT INTO listings SELECT * FROM listable ORDER BY id;

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
