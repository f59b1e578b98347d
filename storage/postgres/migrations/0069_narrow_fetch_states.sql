-- oldest program 69
-- What every fetch writes of a feed has a row of numbers to itself, without an index that
-- would have to be written too.
ALTER TABLE feed_hot RENAME TO feed_outcomes;
ALTER TABLE feed_outcomes RENAME CONSTRAINT feed_hot_pkey TO feed_outcomes_pkey;

-- The server logs an updated row from its first changed byte to its last, so what seldom
-- changes comes first and the latest poll before those that it follows.
CREATE TABLE feed_hot (
    feed_id bigint PRIMARY KEY,
    version int NOT NULL DEFAULT 0,         -- what a fetch is decided on
    fresh_for int NOT NULL DEFAULT -1,      -- seconds after last_fetch; -1: see polling
    price double precision NOT NULL DEFAULT 0,
    velocity double precision NOT NULL DEFAULT 0,
    period double precision NOT NULL DEFAULT 0,
    next_fetch bigint NOT NULL,
    last_fetch bigint,                      -- in microseconds
    unchanged int NOT NULL DEFAULT 0,
    pace smallint NOT NULL DEFAULT 11,
    recent_polls bytea NOT NULL DEFAULT ''  -- up to eight, the latest first
) WITH (fillfactor = 70);

INSERT INTO feed_hot (feed_id, version, price, velocity, period, next_fetch, last_fetch,
    unchanged, pace, recent_polls)
SELECT o.feed_id, f.version, coalesce((p.known ->> 'price')::double precision, 0),
    coalesce((p.known ->> 'velocity')::double precision, 0),
    coalesce((p.known ->> 'period')::double precision, 0), s.next_fetch,
    (extract(epoch FROM (p.known ->> 'last_fetch')::timestamptz) * 1000000)::bigint,
    coalesce((p.known ->> 'unchanged')::int, 0), s.pace,
    (SELECT coalesce(string_agg(substr(o.recent_polls, n, 14), ''::bytea
        ORDER BY n DESC), '') FROM generate_series(1, length(o.recent_polls), 14) n)
FROM feed_outcomes o JOIN feeds f ON f.id = o.feed_id
JOIN schedule s ON s.feed_id = o.feed_id
CROSS JOIN LATERAL (SELECT CASE o.polling WHEN '' THEN NULL
    ELSE convert_from(o.polling, 'UTF8')::jsonb END AS known) p;

-- Now `polling` has what a fetch seldom changes, and what is otherwise than `feed_hot`
-- would have it.
UPDATE feed_outcomes SET polling = convert_to((convert_from(polling, 'UTF8')::jsonb
    - '{price,velocity,period,unchanged}'::text[])::text, 'UTF8') WHERE polling <> '';
ALTER TABLE feed_outcomes DROP COLUMN recent_polls;

CREATE VIEW fetch_states AS
SELECT h.feed_id, h.next_fetch, h.version, CASE o.polling WHEN '' THEN o.polling
    ELSE convert_to(format('{"last_fetch":%1$s,"last_success":%1$s,"last_parse":%1$s,'
        || '"fresh_until":%2$s,"period":%3$s,"price":%4$s,"velocity":%5$s,'
        || '"unchanged":%6$s,', coalesce(to_char(h.fetched, t.form), 'null'),
        CASE WHEN h.fresh_for < 0 OR h.fetched IS NULL THEN 'null'
            ELSE to_char(h.fetched + h.fresh_for * interval '1 second', t.form) END,
        h.period, h.price, h.velocity, h.unchanged), 'UTF8')
        || substr(o.polling, 2) END AS polling
FROM (SELECT *, to_timestamp(last_fetch / 1e6) AT TIME ZONE 'UTC' AS fetched
    FROM feed_hot) h
JOIN feed_outcomes o ON o.feed_id = h.feed_id
CROSS JOIN (VALUES ('"\""YYYY-MM-DD"T"HH24:MI:SS.US"Z\""')) t (form);

CREATE OR REPLACE VIEW stored_feeds AS
SELECT f.id, f.url, f.state, f.private, f.category, f.title, f.format, h.next_fetch,
    f.created_at, f.removed_at, CASE WHEN '' IN (h.polling, f.polling) THEN h.polling
        ELSE substr(f.polling, 1, length(f.polling) - 1) || ','::bytea
            || substr(h.polling, 2) END AS polling, f.credentials, f.condition,
    f.condition_since, f.turned_at, f.own_period,
    coalesce(a.as_is > 0 OR (a.by_topic > 0 AND f.format IN ('', 'part')), FALSE)
        AS keeps_document,
    coalesce(a.subscribers, 0) AS subscribers, h.version::bigint AS version
FROM feeds f JOIN fetch_states h ON h.feed_id = f.id
LEFT JOIN feed_audience a ON a.feed_id = f.id;

-- When a feed is fetched next is in `feed_hot`; this is an index of it. It is not logged:
-- after a crash of the server it is empty, and is filled again. The row of feed 0 says
-- that it is whole.
ALTER TABLE schedule SET UNLOGGED;
INSERT INTO schedule VALUES (0, 0, FALSE, 0);

-- Eight polls a row. When a feed needs no more rows, the oldest is written anew.
ALTER TABLE earlier_polls RENAME TO former_polls;
ALTER TABLE former_polls RENAME CONSTRAINT earlier_polls_pkey TO former_polls_pkey;
CREATE TABLE earlier_polls (
    feed_id bigint NOT NULL,
    slot int NOT NULL,
    turn int NOT NULL,                      -- later polls have a higher one
    polls bytea NOT NULL,
    PRIMARY KEY (feed_id, slot)
) WITH (fillfactor = 60);
INSERT INTO earlier_polls SELECT feed_id, n, n, substr(polls, 112 * n + 1, 112)
    FROM former_polls, generate_series(0, (length(polls) - 1) / 112) n;
DROP TABLE former_polls;

-- These take other arguments now, or are gone.
DROP FUNCTION IF EXISTS
    commit_quiet(bigint[], bytea[], bytea[], text[], bigint[], bigint[], bytea[], bigint[]),
    put_feed_times(bigint[], bytea[], bytea[], bigint[]), kept_polls(bytea);
