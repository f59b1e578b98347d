-- The log: what fetches found, records, and who gets them.

CREATE OR REPLACE FUNCTION packed(value jsonb, name text) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$
SELECT decode(value ->> name, 'base64');
$$;

CREATE OR REPLACE FUNCTION poll_time(polls bytea, number int) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
SELECT ('x' || encode(substr(polls, 14 * number - 13, 6), 'hex'))::bit(48)::bigint;
$$;

CREATE OR REPLACE FUNCTION keep_polls(feed_ids bigint[], given bytea[]) RETURNS void
LANGUAGE sql AS $$
-- Move eight polls of each feed, the latest first, to its earlier polls. Of these the
-- ones of the last day are kept, at most 1,440, and the last 64 however old they are:
-- what is beyond makes room.
WITH added AS (
    SELECT feed_id, poll_time(polls, 1) - 86400000 AS begins, (
        SELECT string_agg(substr(polls, n, 14), ''::bytea ORDER BY n DESC)
        FROM generate_series(1, length(polls), 14) n) AS polls
    FROM unnest(feed_ids, given) a (feed_id, polls)
), ranked AS (
    SELECT a.feed_id, e.slot, e.turn, row_number() OVER oldest AS place,
        row_number() OVER latest >= 8 AND (row_number() OVER latest >= 180
            OR poll_time(e.polls, length(e.polls) / 14) < a.begins) AS is_beyond
    FROM added a CROSS JOIN LATERAL (SELECT * FROM earlier_polls e
        WHERE e.feed_id = a.feed_id) e
    WINDOW oldest AS (PARTITION BY a.feed_id ORDER BY e.turn),
        latest AS (PARTITION BY a.feed_id ORDER BY e.turn DESC)
), chosen AS (
    SELECT a.feed_id, a.polls, coalesce(max(r.turn), 0) + 1 AS turn,
        coalesce(max(r.slot), 0) + 1 AS new_slot,
        min(r.slot) FILTER (WHERE r.place = 1 AND r.is_beyond) AS old_slot
    FROM added a LEFT JOIN ranked r ON r.feed_id = a.feed_id GROUP BY 1, 2
), dropped AS (
    DELETE FROM earlier_polls e USING ranked r
        WHERE e.feed_id = r.feed_id AND e.slot = r.slot AND r.is_beyond AND r.place > 1
), renewed AS (
    UPDATE earlier_polls e SET turn = c.turn, polls = c.polls
        FROM chosen c WHERE e.feed_id = c.feed_id AND e.slot = c.old_slot
)
INSERT INTO earlier_polls SELECT feed_id, new_slot, turn, polls FROM chosen
    WHERE old_slot IS NULL ORDER BY feed_id;
$$;

CREATE OR REPLACE FUNCTION commit_quiet(
    feed_ids bigint[], versions bigint[], times bigint[], paces bigint[], polls bytea[],
    outcomes bytea[], fetched bigint[], fresh bigint[], periods double precision[],
    prices double precision[], velocities double precision[], times_unchanged bigint[],
    cold bytea[], urls text[]
) RETURNS TABLE (place bigint, version bigint) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan AS $$
-- Apply fetches that have found nothing, given by ascending feeds. Returns the version of
-- each one's feed by its place; NULL if the feed is gone; less than 0 if it has changed
-- since the fetch was decided. The row of a feed is compared and written at once: rows
-- that are locked before would be logged twice.
DECLARE
    places bigint[];
    present bigint[];
    later bigint[];
    full_ids bigint[];
    full_polls bytea[];
BEGIN
    IF cold IS NOT NULL THEN
        PERFORM 1 FROM feeds WHERE id = ANY(ARRAY(
                SELECT g.id FROM unnest(feed_ids, cold) g (id, cold) WHERE g.cold <> ''))
            ORDER BY id FOR NO KEY UPDATE;
    END IF;
    WITH before AS MATERIALIZED (
        SELECT h.feed_id, h.recent_polls FROM unnest(feed_ids, polls) g (id, poll)
        JOIN feed_hot h ON h.feed_id = g.id
        WHERE g.poll IS NOT NULL AND length(h.recent_polls) >= 112
    ), written AS (
        UPDATE feed_hot h SET version = h.version + (g.cold IS NOT NULL)::int,
            next_fetch = g.next_fetch, pace = g.pace, last_fetch = g.fetched,
            fresh_for = g.fresh, period = g.period, price = g.price,
            velocity = g.velocity, unchanged = g.unchanged,
            recent_polls = latest_polls(h.recent_polls, g.poll)
        FROM unnest(feed_ids, versions, times, paces, polls, fetched, fresh, periods,
            prices, velocities, times_unchanged, cold) WITH ORDINALITY g (id, version,
            next_fetch, pace, poll, fetched, fresh, period, price, velocity, unchanged,
            cold, place)
        WHERE h.feed_id = g.id AND h.version = coalesce(g.version, h.version)
            AND EXISTS (SELECT 1 FROM feeds f WHERE f.id = g.id AND f.state <> 'removed')
        RETURNING g.place, h.feed_id, h.version
    )
    SELECT array_agg(w.place), array_agg(w.feed_id), array_agg(w.version),
        array_agg(b.feed_id) FILTER (WHERE b.feed_id IS NOT NULL),
        array_agg(b.recent_polls) FILTER (WHERE b.feed_id IS NOT NULL)
        INTO places, present, later, full_ids, full_polls
        FROM written w LEFT JOIN before b ON b.feed_id = w.feed_id;
    IF full_ids IS NOT NULL THEN
        PERFORM keep_polls(full_ids, full_polls);
    END IF;
    UPDATE schedule s SET next_fetch = g.next_fetch, pace = g.pace
        FROM unnest(feed_ids, times, paces) g (id, next_fetch, pace)
        WHERE s.feed_id = g.id AND g.id = ANY(present);
    UPDATE feed_outcomes o SET polling = g.outcome
        FROM unnest(feed_ids, outcomes) g (id, outcome)
        WHERE o.feed_id = g.id AND o.polling <> g.outcome AND g.id = ANY(present);
    UPDATE feeds f SET polling = g.cold, fetch_url = g.url
        FROM unnest(feed_ids, cold, urls) g (id, cold, url)
        WHERE f.id = g.id AND g.cold IS NOT NULL AND g.id = ANY(present);
    RETURN QUERY SELECT * FROM unnest(places, later);
    RETURN QUERY SELECT g.place, CASE WHEN f.id IS NOT NULL THEN -1::bigint END
        FROM unnest(feed_ids) WITH ORDINALITY g (id, place)
        LEFT JOIN feeds f ON f.id = g.id AND f.state <> 'removed'
        WHERE NOT g.place = ANY(coalesce(places, '{}'));
END $$;

CREATE OR REPLACE FUNCTION latest_polls(polls bytea, added bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$
-- The latest polls of a feed with one more, unless that is NULL; after eight they begin
-- anew.
SELECT CASE WHEN added IS NULL THEN polls WHEN length(polls) >= 112 THEN added
    ELSE added || polls END;
$$;

CREATE OR REPLACE FUNCTION commit_news(units jsonb)
RETURNS TABLE (outcome text, first bigint, last bigint, version bigint)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan AS $$
-- Apply what fetches found, each of another feed, in their order. The outcome of each
-- is: stored, with the positions of its records and its feed's new version; gone, if
-- the feed was removed; stale, if the feed has changed since the fetch was decided; or
-- what the fetch lacks: a document, or queries. Each step is done at once for all of
-- them; steps that need no positions come before AUDIENCE is held.
DECLARE
    given jsonb[] := ARRAY(SELECT value FROM jsonb_array_elements(units));
    known_queries bigint := (SELECT queries FROM log_head);
    outcomes text[];
    kept jsonb[];
    firsts bigint[] := '{}';
BEGIN
    PERFORM 1 FROM feeds
        WHERE id = ANY(ARRAY(SELECT (g ->> 'feed_id')::bigint FROM unnest(given) g))
        ORDER BY id FOR NO KEY UPDATE;
    outcomes := outcomes_of(given);
    -- One member for each fetch; NULL if nothing of it is to be stored.
    kept := ARRAY(SELECT CASE o WHEN 'stored' THEN g END
        FROM unnest(given, outcomes) WITH ORDINALITY a (g, o, place) ORDER BY place);
    PERFORM put_feeds(kept);
    PERFORM put_documents(kept);
    IF EXISTS (SELECT 1 FROM unnest(kept) k WHERE has_records(k)) THEN
        PERFORM hold_audience();
        PERFORM require_same_audience(kept, known_queries);
        kept := ARRAY(SELECT with_allowed_matches(k)
            FROM unnest(kept) WITH ORDINALITY a (k, place) ORDER BY place);
        firsts := assign_positions(kept);
    END IF;
    IF EXISTS (SELECT 1 FROM unnest(kept) k WHERE k ? 'body') THEN
        PERFORM put_bodies(kept, firsts);
    END IF;
    PERFORM put_entries(kept, firsts, 'deletions');
    PERFORM put_entries(kept, firsts, 'entries');
    IF firsts <> '{}' THEN
        PERFORM append_records(kept, firsts);
    END IF;
    RETURN QUERY SELECT o, coalesce(f, 1), coalesce(f + count_of_records(k) - 1, 0),
            (g ->> 'version')::bigint + 1
        FROM unnest(given, outcomes, kept, firsts) WITH ORDINALITY a (g, o, k, f, place)
        ORDER BY place;
END $$;

CREATE OR REPLACE FUNCTION has_records(unit jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
SELECT jsonb_array_length(unit -> 'records') > 0
    OR coalesce(jsonb_array_length(unit -> 'matches'), 0) > 0;
$$;

CREATE OR REPLACE FUNCTION count_of_records(unit jsonb) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
SELECT jsonb_array_length(unit -> 'records')
    + coalesce(jsonb_array_length(unit -> 'matches'), 0)::bigint;
$$;

CREATE OR REPLACE FUNCTION outcomes_of(given jsonb[]) RETURNS text[]
LANGUAGE sql STABLE AS $$
SELECT array_agg(CASE
        WHEN f.id IS NULL THEN 'gone'
        WHEN p.version <> (g ->> 'version')::bigint THEN 'stale'
        WHEN (g ->> 'needs_body')::boolean AND (l.as_is > 0
            OR l.by_topic > 0 AND f.format IN ('', 'part')) THEN 'body'
        WHEN (g ->> 'queries')::bigint < h.queries AND has_records(g) THEN 'queries'
        ELSE 'stored' END ORDER BY place)
FROM unnest(given) WITH ORDINALITY a (g, place) CROSS JOIN log_head h
LEFT JOIN feeds f ON f.id = (g ->> 'feed_id')::bigint AND f.state <> 'removed'
LEFT JOIN feed_hot p ON p.feed_id = f.id
LEFT JOIN feed_audience l ON l.feed_id = f.id;
$$;

CREATE OR REPLACE FUNCTION require_same_audience(kept jsonb[], known_queries bigint)
RETURNS void LANGUAGE plpgsql AS $$
-- Raise an error if the audience has changed meanwhile: the call is repeated, and finds
-- the change.
BEGIN
    IF (SELECT queries FROM log_head) <> known_queries OR EXISTS (
        SELECT 1 FROM unnest(kept) k JOIN feed_audience l
            ON l.feed_id = (k ->> 'feed_id')::bigint AND (l.as_is > 0 OR l.by_topic > 0)
        WHERE (k ->> 'needs_body')::boolean AND keeps_document(l.feed_id)) THEN
        RAISE EXCEPTION 'the audience has changed' USING ERRCODE = 'serialization_failure';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION with_allowed_matches(unit jsonb) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
-- The commit without matches of queries that are gone, or may not read the feed.
BEGIN
    IF coalesce(jsonb_array_length(unit -> 'matches'), 0) = 0 THEN
        RETURN unit;
    END IF;
    RETURN jsonb_set(unit, '{matches}', coalesce((
        SELECT jsonb_agg(m ORDER BY place)
        FROM jsonb_array_elements(unit -> 'matches') WITH ORDINALITY a (m, place)
        JOIN feeds t ON t.id = (m ->> 'feed_id')::bigint AND t.state = 'track'
        JOIN feeds f ON f.id = (unit ->> 'feed_id')::bigint
        WHERE may_read(viewer_of(t.id), f)), '[]'));
END $$;

CREATE OR REPLACE FUNCTION assign_positions(kept jsonb[]) RETURNS bigint[]
LANGUAGE plpgsql AS $$
-- Assign positions; returns that of the first record of each commit.
DECLARE
    counts bigint[] := ARRAY(SELECT coalesce(count_of_records(k), 0)
        FROM unnest(kept) WITH ORDINALITY a (k, place) ORDER BY place);
    total bigint := (SELECT sum(c) FROM unnest(counts) c);
    before bigint := (SELECT head FROM log_head);
BEGIN
    IF (before + total) / 1000000 > before / 1000000 THEN
        PERFORM ensure_partitions();
    END IF;
    UPDATE log_head SET head = head + total WHERE total > 0;
    RETURN ARRAY(SELECT before + 1 + sum(c) OVER (ORDER BY place) - c
        FROM unnest(counts) WITH ORDINALITY a (c, place) ORDER BY place);
END $$;

CREATE OR REPLACE FUNCTION put_feeds(kept jsonb[]) RETURNS void LANGUAGE plpgsql AS $$
-- Store the feeds' own rows.
DECLARE
    unit jsonb;
    full_ids bigint[];
    full_polls bytea[];
BEGIN
    UPDATE feeds f SET polling = coalesce(packed(k, 'cold'), f.polling),
        fetch_url = k ->> 'fetch_url', unlisted = (k ->> 'unlisted')::boolean,
        -- The name given to the feed is used while it has no title of its own.
        title = CASE WHEN k ->> 'title' IS NULL THEN f.title
            WHEN k ->> 'title' = '' THEN coalesce(
                (SELECT g.title FROM given_names g WHERE g.feed_id = f.id), '')
            ELSE k ->> 'title' END,
        format = coalesce(k ->> 'format', f.format),
        state = coalesce(k ->> 'state', f.state),
        condition = coalesce(k ->> 'condition', f.condition),
        turned_at = CASE coalesce(k ->> 'state', f.state) WHEN f.state THEN f.turned_at
            ELSE (k ->> 'at')::bigint END,
        removed_at = CASE k ->> 'state' WHEN 'removed' THEN (k ->> 'at')::bigint
            ELSE f.removed_at END,
        condition_since = CASE coalesce(k ->> 'condition', f.condition)
            WHEN f.condition THEN f.condition_since ELSE (k ->> 'at')::bigint END
    FROM unnest(kept) k WHERE f.id = (k ->> 'feed_id')::bigint;
    SELECT array_agg(h.feed_id), array_agg(h.recent_polls) INTO full_ids, full_polls
        FROM unnest(kept) k JOIN feed_hot h ON h.feed_id = (k ->> 'feed_id')::bigint
        WHERE k ->> 'poll' IS NOT NULL AND length(h.recent_polls) >= 112;
    IF full_ids IS NOT NULL THEN
        PERFORM keep_polls(full_ids, full_polls);
    END IF;
    UPDATE feed_hot h SET version = h.version + 1,
        next_fetch = (k ->> 'next_fetch')::bigint, pace = (k ->> 'pace')::smallint,
        last_fetch = (k ->> 'last_fetch')::bigint,
        fresh_for = (k ->> 'fresh_for')::bigint,
        period = (k ->> 'period')::double precision,
        price = (k ->> 'price')::double precision,
        velocity = (k ->> 'velocity')::double precision,
        unchanged = (k ->> 'unchanged')::bigint,
        recent_polls = latest_polls(h.recent_polls, packed(k, 'poll'))
        FROM unnest(kept) k WHERE h.feed_id = (k ->> 'feed_id')::bigint;
    UPDATE feed_outcomes o SET polling = packed(k, 'outcome')
        FROM unnest(kept) k WHERE o.feed_id = (k ->> 'feed_id')::bigint
            AND o.polling <> packed(k, 'outcome');
    UPDATE schedule s SET next_fetch = (k ->> 'next_fetch')::bigint,
            pace = (k ->> 'pace')::smallint
        FROM unnest(kept) k WHERE s.feed_id = (k ->> 'feed_id')::bigint;
    FOR unit IN SELECT k FROM unnest(kept) WITH ORDINALITY a (k, place)
        WHERE k ?| '{events,push,site}' ORDER BY place
    LOOP
        PERFORM put_what_is_rare((unit ->> 'feed_id')::bigint, unit);
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION put_what_is_rare(feed bigint, unit jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF unit ? 'events' AND are_events_wanted() THEN
        INSERT INTO event_queue (event, is_of_hub)
            SELECT e, FALSE FROM jsonb_array_elements_text(unit -> 'events') e;
    END IF;
    IF unit ? 'push' THEN
        PERFORM put_push(feed, unit -> 'push', (unit ->> 'at')::bigint);
    END IF;
    IF unit ? 'site' THEN
        PERFORM put_site(feed, unit -> 'site');
    END IF;
END $$;

CREATE OR REPLACE FUNCTION put_documents(kept jsonb[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    given record;
BEGIN
    SELECT bool_or(k ? 'slices') AS slices, bool_or(k ? 'head') AS head,
        bool_or(k ? 'inventory') AS inventory, bool_or(k ? 'raw') AS raw
        INTO given FROM unnest(kept) k;
    INSERT INTO seen_sets SELECT (k ->> 'feed_id')::bigint, packed(k, 'seen')
        FROM unnest(kept) k WHERE k ? 'seen' ORDER BY 1
        ON CONFLICT (feed_id) DO UPDATE SET seen = excluded.seen;
    IF given.slices THEN
        INSERT INTO slices SELECT (k ->> 'feed_id')::bigint, packed(k, 'slices')
            FROM unnest(kept) k WHERE k ? 'slices' ORDER BY 1
            ON CONFLICT (feed_id) DO UPDATE SET slices = excluded.slices;
    END IF;
    IF given.head THEN
        INSERT INTO feed_heads SELECT (k ->> 'feed_id')::bigint, packed(k, 'head')
            FROM unnest(kept) k WHERE k ? 'head' ORDER BY 1
            ON CONFLICT (feed_id) DO UPDATE SET head = excluded.head;
    END IF;
    IF given.inventory THEN
        INSERT INTO inventories SELECT (k ->> 'feed_id')::bigint, packed(k, 'inventory')
            FROM unnest(kept) k WHERE k ? 'inventory' ORDER BY 1
            ON CONFLICT (feed_id) DO UPDATE SET inventory = excluded.inventory;
    END IF;
    IF given.raw THEN
        INSERT INTO raw_documents SELECT (k ->> 'feed_id')::bigint,
                k -> 'raw' ->> 'content_type', packed(k -> 'raw', 'body')
            FROM unnest(kept) k WHERE k ? 'raw' ORDER BY 1
            ON CONFLICT (feed_id) DO UPDATE SET content_type = excluded.content_type,
                body = excluded.body;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION put_bodies(kept jsonb[], firsts bigint[]) RETURNS void
LANGUAGE sql AS $$
INSERT INTO bodies AS b SELECT (k ->> 'feed_id')::bigint, k -> 'body' ->> 'content_type',
        packed(k -> 'body', 'body'), coalesce(first + (k ->> 'document')::bigint, 0)
    FROM unnest(kept, firsts) a (k, first)
    WHERE k ? 'body' AND keeps_document((k ->> 'feed_id')::bigint) ORDER BY 1
    ON CONFLICT (feed_id) DO UPDATE SET content_type = excluded.content_type,
        body = excluded.body, position = greatest(b.position, excluded.position);
$$;

CREATE OR REPLACE FUNCTION put_entries(kept jsonb[], firsts bigint[], what text)
RETURNS void LANGUAGE plpgsql AS $$
-- Store entries or deletions, as `what` says. A deletion keeps the last body and the
-- entry's date.
BEGIN
    IF NOT EXISTS (SELECT 1 FROM unnest(kept) k
        WHERE jsonb_array_length(k -> what) > 0) THEN
        RETURN;
    END IF;
    WITH each AS MATERIALIZED ( -- lest a whole commit is sorted with each of its entries
        SELECT (k ->> 'feed_id')::bigint AS feed, (k ->> 'at')::bigint AS at, f AS first,
            a.place AS unit, b.place AS place, e
        FROM unnest(kept, firsts) WITH ORDINALITY a (k, f, place)
        CROSS JOIN LATERAL jsonb_array_elements(k -> what) WITH ORDINALITY b (e, place)
    ), g AS (
        SELECT feed, at, packed(e, 'hash') AS hash, e ->> 'key' AS key,
            (e ->> 'deleted')::boolean AS deleted,
            (e ->> 'published')::bigint AS published,
            coalesce(first + (e ->> 'record')::bigint, 0) AS position,
            packed(e, 'body') AS body, (e ->> 'unlisted')::boolean AS unlisted,
            row_number() OVER (ORDER BY unit, place) AS place
        FROM each
    ), known AS (
        UPDATE entries e SET revision = e.revision + 1, deleted = g.deleted,
            sorted_at = CASE WHEN g.deleted THEN e.sorted_at
                ELSE coalesce(g.published, e.sorted_at) END,
            last_position = greatest(e.last_position, g.position),
            body = CASE WHEN g.deleted THEN e.body ELSE g.body END,
            unlisted = CASE WHEN g.deleted THEN e.unlisted ELSE g.unlisted END
        FROM g WHERE e.feed_id = g.feed AND e.key_hash = g.hash
        RETURNING g.place
    )
    INSERT INTO entries (feed_id, key_hash, key, revision, deleted, sorted_at,
        last_position, body, unlisted)
    SELECT g.feed, g.hash, g.key, 1, g.deleted, coalesce(g.published, g.at), g.position,
        g.body, g.unlisted
    FROM g WHERE g.place NOT IN (SELECT place FROM known) ORDER BY g.place;
END $$;

CREATE OR REPLACE FUNCTION append_records(kept jsonb[], firsts bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
-- Append the records of each fetch, then those of the queries that it matches. The
-- entries that they name are kept as long as the records.
DECLARE
    made records[];
    missing text;
BEGIN
    WITH told AS MATERIALIZED (
        SELECT first + place - 1 AS position, at, feed AS source, feed, r ->> 'kind' AS kind,
            (r ->> 'news')::bigint AS news, packed(r, 'status') AS status,
            (r ->> 'is_superseded')::boolean AS is_superseded, NULL::bigint AS source_id,
            r -> 'entries' AS named
        FROM placed_units(kept, firsts),
            jsonb_array_elements(unit -> 'records') WITH ORDINALITY a (r, place)
        UNION ALL
        SELECT first + jsonb_array_length(unit -> 'records') + place - 1, at, feed,
            (m ->> 'feed_id')::bigint, 'entries', (m ->> 'news')::bigint,
            packed(unit, 'match_status'), FALSE, feed, m -> 'entries'
        FROM placed_units(kept, firsts),
            jsonb_array_elements(unit -> 'matches') WITH ORDINALITY a (m, place)
    ), named AS (
        SELECT t.source, decode(n ->> 0, 'base64') AS hash, max(t.position) AS position
        FROM told t, jsonb_array_elements(t.named) n GROUP BY 1, 2
    ), moved AS (
        UPDATE entries e SET last_position = n.position FROM named n
        WHERE e.feed_id = n.source AND e.key_hash = n.hash
            AND e.last_position < n.position
    )
    SELECT array_agg(ROW(t.position, t.at, t.feed, t.kind, t.news, t.status,
            coalesce(r.refs, ''), t.is_superseded, t.source_id, NULL)::records
            ORDER BY t.position), min(r.missing)
        INTO made, missing
        FROM told t CROSS JOIN LATERAL (
            SELECT min(n ->> 2) FILTER (WHERE e.id IS NULL) AS missing,
                string_agg(int8send(e.id)
                    || int8send(e.revision << 1 | (n ->> 1)::boolean::int),
                    ''::bytea ORDER BY place) AS refs
            FROM jsonb_array_elements(t.named) WITH ORDINALITY a (n, place)
            LEFT JOIN LATERAL (
                SELECT id, revision FROM entries WHERE feed_id = t.source
                    AND key_hash = decode(n ->> 0, 'base64') LIMIT 1
            ) e ON TRUE
        ) r;
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'there is no entry % for its record', missing
            USING ERRCODE = 'foreign_key_violation';
    END IF;
    INSERT INTO records SELECT * FROM unnest(made);
    DELETE FROM awaited_errors WHERE feed_id = ANY(ARRAY(
        SELECT feed_id FROM unnest(made) WHERE kind = 'error'));
    PERFORM fan_out(ARRAY(SELECT m FROM unnest(made) m WHERE kind <> 'baseline'));
END $$;

CREATE OR REPLACE FUNCTION placed_units(kept jsonb[], firsts bigint[])
RETURNS TABLE (unit jsonb, first bigint, feed bigint, at bigint)
LANGUAGE sql IMMUTABLE AS $$
SELECT k, f, (k ->> 'feed_id')::bigint, (k ->> 'at')::bigint
FROM unnest(kept, firsts) a (k, f);
$$;

CREATE OR REPLACE FUNCTION fan_out(made records[]) RETURNS void LANGUAGE plpgsql AS $$
-- Write a fan-out of each record, if anybody receives it. A subscription made from here
-- on starts above the record. Few subscribers are checked now; more are checked when
-- the fan-out is split.
BEGIN
    WITH owed AS (
        INSERT INTO fanouts SELECT m.position, m.feed_id, 0
        FROM unnest(made) m JOIN feed_audience a ON a.feed_id = m.feed_id
        WHERE a.subscribers > 20 OR a.subscribers > 0 AND EXISTS (
            SELECT 1 FROM subscriptions s WHERE s.feed_id = m.feed_id
                AND s.state = 'active' AND s.from_position < m.position
                AND s.wants & m.news <> 0)
        ORDER BY m.position RETURNING position, feed_id
    )
    INSERT INTO fanout_turns AS t SELECT feed_id, min(position), 0 FROM owed
        GROUP BY feed_id ORDER BY feed_id
        ON CONFLICT (feed_id) DO UPDATE SET first = least(t.first, excluded.first);
END $$;

CREATE OR REPLACE FUNCTION put_site(feed bigint, site jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO site_states VALUES (feed, packed(site, 'state'))
        ON CONFLICT (feed_id) DO UPDATE SET state = excluded.state;
    UPDATE site_pages SET walk = (site ->> 'walk')::bigint
        WHERE feed_id = feed AND key_hash IN (SELECT decode(h, 'base64')
            FROM jsonb_array_elements_text(site -> 'listed') h);
    INSERT INTO site_pages
    SELECT feed, decode(p ->> 'hash', 'base64'), p ->> 'key', p ->> 'reference',
        (p ->> 'content')::bigint, (p ->> 'stamp')::bigint, (p ->> 'walk')::bigint,
        (p ->> 'day')::bigint, (p ->> 'changes')::bigint, (p ->> 'is_deleted')::boolean
    FROM jsonb_array_elements(site -> 'pages') p
    ON CONFLICT (feed_id, key_hash) DO UPDATE SET reference = excluded.reference,
        content = excluded.content, stamp = excluded.stamp, walk = excluded.walk,
        day = excluded.day, changes = excluded.changes, deleted = excluded.deleted;
END $$;

-- --- trimming ---

CREATE OR REPLACE FUNCTION trim_log(
    now bigint, soft_before double precision, soft_count bigint,
    hard_before double precision, hard_count bigint, soft_end bigint, hard_end bigint,
    spared_from double precision, most bigint
) RETURNS bigint LANGUAGE plpgsql AS $$
-- Trim the log; returns how many positions were trimmed, including those whose records
-- were deleted with their feed before. Nothing is deleted that a fan-out or a chunk
-- still has to deliver. A retry holds up the soft limits but not the hard ones; then
-- what it missed becomes a dead letter.
DECLARE
    log log_head;
    last bigint;
    spared bigint;
    soft bigint;
    hard bigint;
    upto bigint;
    needed bigint;
BEGIN
    PERFORM hold_audience();
    PERFORM ensure_partitions();
    SELECT * INTO log FROM log_head;
    last := least(before_many_entries(log.tail, most),
        coalesce((SELECT min(position) - 1 FROM fanouts), log.head),
        coalesce((SELECT min(position) - 1 FROM chunks), log.head));
    spared := last_beyond(log.tail, last, spared_from, 0);
    soft := greatest(last_beyond(log.tail, last, soft_before, log.head - soft_count),
        least(soft_end, spared));
    hard := greatest(last_beyond(log.tail, last, hard_before, log.head - hard_count),
        least(hard_end, spared));
    SELECT min((SELECT min(r.position) FROM kept_records r
            WHERE r.feed_id = g.feed_id AND r.position > g.position)) INTO needed
        FROM retries g WHERE g.position < soft;
    upto := greatest(hard, least(soft, coalesce(needed - 1, soft)));
    IF upto <= log.tail THEN
        RETURN 0;
    END IF;
    PERFORM pass_retries_by(upto, now);
    PERFORM drop_records(log.tail, upto);
    RETURN upto - log.tail;
END $$;

CREATE OR REPLACE FUNCTION before_many_entries(tail bigint, most bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$
-- The end of the oldest records that a short transaction can drop; one at least.
SELECT coalesce((
    SELECT position - (place > 1)::int FROM (
        SELECT position, row_number() OVER w AS place, sum(length(refs) / 16) OVER w AS n
        FROM records WHERE position > tail AND position <= tail + most
        WINDOW w AS (ORDER BY position)
    ) r WHERE n > 1000 ORDER BY position LIMIT 1
), tail + most);
$$;

CREATE OR REPLACE FUNCTION last_beyond(
    tail bigint, last bigint, before double precision, kept_from bigint
) RETURNS bigint LANGUAGE sql STABLE AS $$
-- The end of the oldest records that are all beyond a limit.
SELECT coalesce((SELECT min(position) - 1 FROM records WHERE position > tail
    AND position <= last AND at >= before AND position > kept_from), last);
$$;

CREATE OR REPLACE FUNCTION pass_retries_by(upto bigint, now bigint) RETURNS void
LANGUAGE plpgsql AS $$
-- Make dead letters of the trimmed records that retries wanted.
DECLARE
    missed record;
BEGIN
    FOR missed IN SELECT g.subscription_id AS id, min(r.position) AS first,
            max(r.position) AS last
        FROM retries g JOIN subscriptions s ON s.id = g.subscription_id
        JOIN kept_records r ON r.feed_id = g.feed_id AND r.position > g.position
            AND r.position <= upto AND s.wants & r.news <> 0
        WHERE g.position < upto AND NOT (r.position > coalesce(g.skip_after, r.position)
            AND r.position <= coalesce(g.skip_to, 0))
        GROUP BY g.subscription_id ORDER BY g.subscription_id
    LOOP
        PERFORM add_dead_letter(missed.id, missed.first, missed.last, 'trimmed', now);
        UPDATE retries SET position = upto, missed_last = missed.last,
            missed_first = coalesce(missed_first, missed.first)
            WHERE subscription_id = missed.id;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION drop_records(tail_before bigint, upto bigint) RETURNS void
LANGUAGE plpgsql AS $$
-- Trim records, without deleting their rows: a partition is dropped once all of it is
-- trimmed.
DECLARE
    each record;
BEGIN
    INSERT INTO trimmed SELECT feed_id, max(position) FROM records
        WHERE position > tail_before AND position <= upto AND kind <> 'baseline'
        GROUP BY feed_id ORDER BY feed_id
        ON CONFLICT (feed_id) DO UPDATE SET position = excluded.position;
    UPDATE log_head SET tail = upto;
    FOR each IN SELECT DISTINCT coalesce(source_id, feed_id) AS feed FROM records
        WHERE position > tail_before AND position <= upto ORDER BY 1
    LOOP
        DELETE FROM entries WHERE feed_id = each.feed AND last_position <= upto
            AND id NOT IN (SELECT id FROM entries WHERE feed_id = each.feed
                AND NOT deleted ORDER BY sorted_at DESC, id LIMIT 50);
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION drop_partitions() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
-- Drop partitions of the log that are wholly trimmed; this locks the whole log for a
-- moment.
DECLARE
    number bigint;
BEGIN
    SET LOCAL lock_timeout = '500ms';
    FOR number IN SELECT n FROM log_head, generate_series(0, tail / 1000000 - 1) n
        WHERE to_regclass('records_' || n) IS NOT NULL
    LOOP
        EXECUTE format('DROP TABLE records_%s', number);
    END LOOP;
END $$;

-- --- what follows from changes ---

CREATE OR REPLACE FUNCTION entries_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO page_news SELECT id FROM added ON CONFLICT (entry_id) DO NOTHING;
    INSERT INTO page_withdrawals SELECT p.section, 1 FROM added a
        JOIN page_shown p ON p.feed_id = a.feed_id WHERE a.deleted;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER entries_inserted AFTER INSERT ON entries
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT
    EXECUTE FUNCTION entries_inserted();

CREATE OR REPLACE FUNCTION entries_updated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO page_news SELECT n.id FROM after n JOIN before o ON o.id = n.id
        AND o.revision <> n.revision ORDER BY n.id ON CONFLICT (entry_id) DO NOTHING;
    INSERT INTO page_withdrawals SELECT p.section, 1 FROM after n
        JOIN before o ON o.id = n.id AND NOT (o.deleted OR o.unlisted)
        JOIN page_shown p ON p.feed_id = n.feed_id WHERE n.deleted OR n.unlisted;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER entries_updated AFTER UPDATE ON entries
    REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION entries_updated();

CREATE OR REPLACE FUNCTION entries_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO page_news SELECT id FROM gone ORDER BY id
        ON CONFLICT (entry_id) DO NOTHING;
    INSERT INTO search_queue SELECT g.id FROM gone g
        WHERE EXISTS (SELECT 1 FROM searched s, search_state st
            WHERE s.entry_id = g.id AND s.generation = st.generation)
        ORDER BY g.id ON CONFLICT (entry_id) DO NOTHING;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER entries_deleted AFTER DELETE ON entries
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
    EXECUTE FUNCTION entries_deleted();
