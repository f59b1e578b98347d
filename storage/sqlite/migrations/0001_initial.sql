-- Times are milliseconds since 1970 UTC. Text keys that may be long are indexed by a
-- 16-byte hash of them, made outside.

CREATE TABLE meta (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epoch TEXT NOT NULL,            -- "" until the first opening names it
    head INTEGER NOT NULL,          -- the last position that was assigned
    tail INTEGER NOT NULL,          -- records up to here were trimmed
    is_copy INTEGER NOT NULL,       -- a backup: its first opening starts a new epoch
    key_check TEXT NOT NULL,        -- tells whether a key is this database's
    checked_at INTEGER NOT NULL     -- counts the trial writes of readiness checks
) STRICT;

INSERT INTO meta VALUES (1, '', 0, 0, 0, '', 0);

CREATE TABLE accounts (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

INSERT INTO accounts VALUES (1, 'anonymous'), (2, 'operator');

-- feeds

CREATE TABLE feeds (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    url TEXT NOT NULL,
    state TEXT NOT NULL,
    private INTEGER NOT NULL,
    section TEXT NOT NULL,
    title TEXT NOT NULL,
    format TEXT NOT NULL,
    next_fetch INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    removed_at INTEGER,
    fetch_url TEXT NOT NULL,        -- as in polling: where the next request goes
    credentials TEXT NOT NULL,      -- encrypted; "" when there are none
    subscribers INTEGER NOT NULL DEFAULT 0,        -- active ones; kept by triggers
    as_is_subscribers INTEGER NOT NULL DEFAULT 0,
    polling BLOB NOT NULL           -- empty before the first fetch
) STRICT;

CREATE INDEX feeds_due ON feeds (state, next_fetch, id);
CREATE INDEX feeds_by_state ON feeds (state, id);
CREATE INDEX feeds_removed ON feeds (removed_at) WHERE state = 'removed';

-- What is read of a feed, in the order that feed_rows.py expects.
CREATE VIEW stored_feeds AS
SELECT id, url, state, private, section, title, format, next_fetch, created_at,
    removed_at, polling, credentials, as_is_subscribers, subscribers
FROM feeds;

CREATE TABLE topics (
    id INTEGER PRIMARY KEY,
    url TEXT NOT NULL UNIQUE,
    feed_id INTEGER NOT NULL
) STRICT;

CREATE INDEX topics_by_feed ON topics (feed_id);

CREATE TABLE seen_sets (
    feed_id INTEGER PRIMARY KEY,
    seen BLOB NOT NULL
) STRICT;

CREATE TABLE feed_heads (
    feed_id INTEGER PRIMARY KEY,
    head BLOB NOT NULL
) STRICT;

CREATE TABLE bodies (
    feed_id INTEGER PRIMARY KEY,
    content_type TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT;

-- the log

CREATE TABLE entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    feed_id INTEGER NOT NULL,
    key_hash BLOB NOT NULL,
    key TEXT NOT NULL,
    revision INTEGER NOT NULL,
    deleted INTEGER NOT NULL,
    sorted_at INTEGER NOT NULL,     -- its own date, or else when it was first stored
    last_position INTEGER NOT NULL, -- of the last record that names it
    body BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX entries_by_key ON entries (feed_id, key_hash);
CREATE INDEX entries_latest ON entries (feed_id, sorted_at DESC, id) WHERE deleted = 0;

CREATE TABLE records (
    position INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    feed_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    any_fresh INTEGER NOT NULL,
    status BLOB NOT NULL,
    refs BLOB NOT NULL              -- packed (entry id, revision and freshness)
) STRICT;

CREATE INDEX records_by_feed ON records (feed_id, position);

-- subscriptions

CREATE TABLE subscriptions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL,
    topic_id INTEGER NOT NULL,
    feed_id INTEGER NOT NULL,
    callback_hash BLOB NOT NULL,
    callback TEXT NOT NULL,
    secret TEXT NOT NULL,           -- encrypted; "" when there is none
    algorithm TEXT NOT NULL,
    format TEXT NOT NULL,
    updates TEXT NOT NULL,
    batch INTEGER NOT NULL,
    state TEXT NOT NULL,
    from_position INTEGER NOT NULL,
    lease_end INTEGER,
    created_at INTEGER NOT NULL,
    exhausted INTEGER NOT NULL,
    ended_reason TEXT NOT NULL,
    ended_at INTEGER
) STRICT;

CREATE UNIQUE INDEX subscriptions_by_key
    ON subscriptions (callback_hash, topic_id, account_id);
CREATE INDEX subscriptions_by_topic ON subscriptions (topic_id, id);
CREATE INDEX subscriptions_by_feed ON subscriptions (feed_id, state, id);
CREATE INDEX subscriptions_by_account ON subscriptions (account_id, id);
CREATE INDEX subscriptions_expiring ON subscriptions (lease_end)
    WHERE state = 'active' AND lease_end IS NOT NULL;
CREATE INDEX subscriptions_ending ON subscriptions (id) WHERE state = 'ending';
CREATE INDEX subscriptions_ended ON subscriptions (ended_at, id) WHERE state = 'ended';

-- What is read of a subscription, in the order that subscription_rows.py expects.
CREATE VIEW stored_subscriptions AS
SELECT s.id, s.account_id, t.url AS topic, s.feed_id, s.callback, s.secret,
    s.algorithm, s.format, s.updates, s.batch, s.state, s.from_position, s.lease_end,
    s.created_at, s.exhausted, s.ended_reason
FROM subscriptions s JOIN topics t ON t.id = s.topic_id;

CREATE TRIGGER subscription_added AFTER INSERT ON subscriptions
WHEN NEW.state = 'active'
BEGIN
    UPDATE feeds SET
        subscribers = subscribers + 1,
        as_is_subscribers = as_is_subscribers + (NEW.format = 'as-is')
    WHERE id = NEW.feed_id;
END;

-- Adds before it subtracts, so that a count does not pass through zero.
CREATE TRIGGER subscription_changed
AFTER UPDATE OF state, format, feed_id ON subscriptions
BEGIN
    UPDATE feeds SET
        subscribers = subscribers + 1,
        as_is_subscribers = as_is_subscribers + (NEW.format = 'as-is')
    WHERE id = NEW.feed_id AND NEW.state = 'active';
    UPDATE feeds SET
        subscribers = subscribers - 1,
        as_is_subscribers = as_is_subscribers - (OLD.format = 'as-is')
    WHERE id = OLD.feed_id AND OLD.state = 'active';
END;

CREATE TRIGGER subscription_deleted AFTER DELETE ON subscriptions
WHEN OLD.state = 'active'
BEGIN
    UPDATE feeds SET
        subscribers = subscribers - 1,
        as_is_subscribers = as_is_subscribers - (OLD.format = 'as-is')
    WHERE id = OLD.feed_id;
END;

CREATE TRIGGER body_unwanted AFTER UPDATE OF as_is_subscribers ON feeds
WHEN NEW.as_is_subscribers = 0 AND OLD.as_is_subscribers > 0
BEGIN
    DELETE FROM bodies WHERE feed_id = NEW.id;
END;

-- delivery

CREATE TABLE fanouts (
    position INTEGER PRIMARY KEY,
    feed_id INTEGER NOT NULL,
    after_id INTEGER NOT NULL,      -- subscriptions up to here are in chunks
    is_next INTEGER NOT NULL        -- the feed's earliest
) STRICT;

CREATE INDEX fanouts_by_feed ON fanouts (feed_id, position);
CREATE INDEX fanouts_next ON fanouts (position) WHERE is_next = 1;

CREATE TABLE chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    position INTEGER NOT NULL,
    feed_id INTEGER NOT NULL,
    at INTEGER NOT NULL,            -- of the last acknowledgement
    lease_id INTEGER NOT NULL,
    due INTEGER NOT NULL,           -- the lease's end
    members TEXT NOT NULL,          -- JSON array of subscription ids, ascending
    outcomes BLOB NOT NULL          -- packed (status, milliseconds) of each member
) STRICT;

CREATE INDEX chunks_by_feed ON chunks (feed_id, position);

-- Finished chunks: the history of deliveries that went straight through.
CREATE TABLE deliveries (
    id INTEGER PRIMARY KEY,
    feed_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    at INTEGER NOT NULL,
    first_id INTEGER NOT NULL,
    last_id INTEGER NOT NULL,
    members TEXT NOT NULL,
    outcomes BLOB NOT NULL
) STRICT;

CREATE INDEX deliveries_by_feed ON deliveries (feed_id, position, first_id, last_id);
CREATE INDEX deliveries_by_age ON deliveries (at);

CREATE TABLE stragglers (
    subscription_id INTEGER PRIMARY KEY,
    feed_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    next_try INTEGER NOT NULL,
    failing_since INTEGER NOT NULL,
    last_status INTEGER NOT NULL,
    last_error TEXT NOT NULL,
    skip_after INTEGER,
    skip_to INTEGER,
    missed_first INTEGER,
    missed_last INTEGER,
    lease_id INTEGER NOT NULL,
    due INTEGER NOT NULL            -- the next try, or the end of the lease
) STRICT;

CREATE INDEX stragglers_due ON stragglers (due);
CREATE INDEX stragglers_by_position ON stragglers (position);

-- What is read of a straggler, in the order that delivery_rows.py expects.
CREATE VIEW stored_stragglers AS
SELECT s.id, s.account_id, t.url AS topic, s.feed_id, s.callback, s.secret,
    s.algorithm, s.format, s.updates, s.batch, s.state, s.from_position, s.lease_end,
    s.created_at, s.exhausted, s.ended_reason,
    g.position, g.attempts, g.next_try, g.failing_since, g.last_status, g.last_error,
    g.skip_after, g.skip_to, g.missed_first, g.missed_last, g.lease_id
FROM stragglers g
JOIN subscriptions s ON s.id = g.subscription_id
JOIN topics t ON t.id = s.topic_id;

CREATE TABLE dead (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    subscription_id INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    reason TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;

CREATE INDEX dead_by_subscription ON dead (subscription_id, id);

CREATE VIEW stored_dead AS
SELECT d.id, d.subscription_id, t.url AS topic, s.callback, d.first, d.last, d.reason,
    d.at
FROM dead d
JOIN subscriptions s ON s.id = d.subscription_id
JOIN topics t ON t.id = s.topic_id;

CREATE TABLE attempts (
    id INTEGER PRIMARY KEY,
    subscription_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    at INTEGER NOT NULL,
    status INTEGER NOT NULL,
    milliseconds INTEGER NOT NULL,
    error TEXT NOT NULL
) STRICT;

CREATE INDEX attempts_by_subscription ON attempts (subscription_id, id);
CREATE INDEX attempts_by_age ON attempts (at);
