-- What fetches found: polling states, documents, entries and records. The hub packs it
-- into rows of the types of migration 78.

-- --- fetches without news ---

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

CREATE OR REPLACE FUNCTION commit_quiet(commits fetch_commit[])
RETURNS TABLE (place int, version int) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan AS $$
-- Apply fetches that have found nothing, given by ascending feeds. Returns the version of
-- each one's feed by its place; NULL if the feed is gone; less than 0 if it has changed
-- since the fetch was decided. The row of a feed is compared and written at once: rows
-- that are locked before would be logged twice.
DECLARE
    places int[];
    present bigint[];
    later int[];
    full_ids bigint[];
    full_polls bytea[];
BEGIN
    PERFORM 1 FROM feeds WHERE id = ANY(ARRAY(
            SELECT c.feed_id FROM unnest(commits) c WHERE c.cold IS NOT NULL))
        ORDER BY id FOR NO KEY UPDATE;
    WITH before AS MATERIALIZED (
        SELECT h.feed_id, h.recent_polls FROM unnest(commits) c
        JOIN feed_hot h ON h.feed_id = c.feed_id
        WHERE c.poll IS NOT NULL AND length(h.recent_polls) >= 112
    ), written AS (
        UPDATE feed_hot h SET version = h.version + (c.cold IS NOT NULL)::int,
            next_fetch = c.next_fetch, pace = c.pace, last_fetch = c.last_fetch,
            fresh_for = c.fresh_for, period = c.period, price = c.price,
            velocity = c.velocity, unchanged = c.unchanged,
            recent_polls = latest_polls(h.recent_polls, c.poll)
        FROM unnest(commits) c
        WHERE h.feed_id = c.feed_id AND h.version = coalesce(c.version, h.version)
            AND EXISTS (SELECT 1 FROM feeds f
                WHERE f.id = c.feed_id AND f.state <> 'removed')
        RETURNING c.place, h.feed_id, h.version
    )
    SELECT array_agg(w.place), array_agg(w.feed_id), array_agg(w.version),
        array_agg(b.feed_id) FILTER (WHERE b.feed_id IS NOT NULL),
        array_agg(b.recent_polls) FILTER (WHERE b.feed_id IS NOT NULL)
        INTO places, present, later, full_ids, full_polls
        FROM written w LEFT JOIN before b ON b.feed_id = w.feed_id;
    IF full_ids IS NOT NULL THEN
        PERFORM keep_polls(full_ids, full_polls);
    END IF;
    UPDATE schedule s SET next_fetch = c.next_fetch, pace = c.pace
        FROM unnest(commits) c WHERE s.feed_id = c.feed_id AND c.feed_id = ANY(present);
    UPDATE feed_outcomes o SET polling = c.outcome FROM unnest(commits) c
        WHERE o.feed_id = c.feed_id AND o.polling <> c.outcome
            AND c.feed_id = ANY(present);
    UPDATE feeds f SET polling = c.cold, fetch_url = c.fetch_url, state = f.state
        FROM unnest(commits) c
        WHERE f.id = c.feed_id AND c.cold IS NOT NULL AND c.feed_id = ANY(present);
    RETURN QUERY SELECT * FROM unnest(places, later);
    RETURN QUERY SELECT c.place, CASE WHEN f.id IS NOT NULL THEN -1 END
        FROM unnest(commits) c
        LEFT JOIN feeds f ON f.id = c.feed_id AND f.state <> 'removed'
        WHERE NOT c.place = ANY(coalesce(places, '{}'));
END $$;

CREATE OR REPLACE FUNCTION latest_polls(polls bytea, added bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$
-- The latest polls of a feed with one more, unless that is NULL; after eight they begin
-- anew.
SELECT CASE WHEN added IS NULL THEN polls WHEN length(polls) >= 112 THEN added
    ELSE added || polls END;
$$;

-- --- news ---

CREATE OR REPLACE FUNCTION commit_news(
    of_node bigint, given_number bigint, of_incarnation bigint, commits fetch_commit[],
    deletions fetch_entry[], entries fetch_entry[], named fetch_entry[],
    records fetch_record[], OUT log_end bigint, OUT versions int[], OUT counts int[]
) LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan AS $$
-- Apply what fetches found, in a node's lane. Commits are given by ascending feeds, their
-- entries and records by the places of the commits; `named` are entries that records
-- name and that are not stored, or are named once more. The answer is as `lanes` keeps
-- it; a version of NULL says that the feed is gone, one below 0 why nothing was stored,
-- as `refusal_of` has it. Each step is done at once for all commits; steps that need no
-- positions come before AUDIENCE is held.
DECLARE
    known lanes := former_write(of_node, 'news');
    known_queries bigint := (SELECT queries FROM log_head);
    stored int[];
    have_matches boolean;
    have_more boolean;
    positions bigint[];
    refs bytea[];
BEGIN
    IF known.last_number = given_number THEN
        SELECT known.before, known.versions, known.counts
            INTO log_end, versions, counts;
        RETURN;
    END IF;
    PERFORM require_term(of_incarnation);
    SELECT p.* INTO stored, versions, have_matches, have_more FROM put_feeds(commits) p;
    IF cardinality(stored) = cardinality(commits) THEN
        stored := NULL;
    ELSE
        versions := ARRAY(SELECT coalesce(s.version, refusal_of(c))
            FROM unnest(commits) c
            LEFT JOIN unnest(stored, versions) s (place, version) ON s.place = c.place
            ORDER BY c.place);
        commits := ARRAY(SELECT c FROM unnest(commits) c WHERE c.place = ANY(stored));
        deletions := entries_of(deletions, stored);
        entries := entries_of(entries, stored);
        named := entries_of(named, stored);
    END IF;
    PERFORM put_fetch_states(commits);
    IF have_more THEN
        PERFORM put_what_is_rare(commits);
    END IF;
    -- Trimming deletes entries while it holds AUDIENCE: they are written under it too.
    IF records <> '{}' OR entries <> '{}' OR deletions <> '{}' THEN
        PERFORM hold_audience();
        PERFORM require_same_audience(commits, known_queries);
        SELECT p.* INTO log_end, positions
            FROM assign_positions(records, stored, have_matches) p;
        refs := put_entries(deletions, TRUE, positions)
            || put_entries(entries, FALSE, positions) || name_entries(named, positions);
        PERFORM fan_out(append_records(
            records, positions, deletions || entries || named, refs));
        IF array_position(positions, NULL) IS NOT NULL THEN
            counts := ARRAY(SELECT count(r.position)
                FROM generate_series(1, cardinality(versions)) each
                LEFT JOIN unnest(positions, records) r (position) ON r.place = each
                GROUP BY each ORDER BY each);
        END IF;
    END IF;
    IF have_more THEN
        PERFORM put_bodies(commits, positions);
    END IF;
    UPDATE lanes l SET last_number = given_number, before = log_end,
        versions = commit_news.versions, counts = commit_news.counts
        WHERE l.node = of_node AND l.name = 'news';
END $$;

CREATE OR REPLACE FUNCTION put_feeds(
    commits fetch_commit[], OUT stored int[], OUT versions int[],
    OUT have_matches boolean, OUT have_more boolean
) LANGUAGE plpgsql AS $$
-- Store the feeds' own rows, of commits whose feeds are as they were when these were
-- decided, and which lack nothing: their places, and the feeds' new versions. The feeds
-- are locked in the order of their ids, as everywhere: the order in which an update comes
-- to its rows is the planner's.
DECLARE
    allowed int;
    full_ids bigint[];
    full_polls bytea[];
BEGIN
    PERFORM 1 FROM feeds WHERE id = ANY(ARRAY(SELECT c.feed_id FROM unnest(commits) c))
        ORDER BY id FOR NO KEY UPDATE;
    WITH written AS (
        -- If no column that others are generated from is written, PostgreSQL 16 and newer
        -- parse the expressions of these anew for each row, which costs more than all else.
        UPDATE feeds f SET polling = coalesce(c.cold, f.polling),
            fetch_url = c.fetch_url, unlisted = c.unlisted, state = f.state
        FROM unnest(commits) c JOIN feed_hot h ON h.feed_id = c.feed_id
            LEFT JOIN feed_audience a ON a.feed_id = c.feed_id CROSS JOIN log_head l
        WHERE f.id = c.feed_id AND f.state <> 'removed'
            AND h.version = coalesce(c.version, h.version) AND c.queries >= l.queries
            AND NOT (c.needs_body AND is_document_kept(f, a))
        RETURNING c.place, c.has_matches, c.has_more
    )
    SELECT coalesce(array_agg(place), '{}'), count(*), bool_or(w.has_matches),
        bool_or(w.has_more) INTO stored, allowed, have_matches, have_more FROM written w;
    SELECT array_agg(h.feed_id), array_agg(h.recent_polls) INTO full_ids, full_polls
        FROM unnest(commits) c JOIN feed_hot h ON h.feed_id = c.feed_id
        WHERE c.poll IS NOT NULL AND c.place = ANY(stored)
            AND length(h.recent_polls) >= 112;
    IF full_ids IS NOT NULL THEN
        PERFORM keep_polls(full_ids, full_polls);
    END IF;
    WITH written AS (
        UPDATE feed_hot h SET version = h.version + 1, next_fetch = c.next_fetch,
            pace = c.pace, last_fetch = c.last_fetch, fresh_for = c.fresh_for,
            period = c.period, price = c.price, velocity = c.velocity,
            unchanged = c.unchanged, recent_polls = latest_polls(h.recent_polls, c.poll)
        FROM unnest(commits) c WHERE h.feed_id = c.feed_id
            AND h.version = coalesce(c.version, h.version)
            AND (allowed = cardinality(commits) OR c.place = ANY(stored))
        RETURNING c.place, h.version
    )
    SELECT coalesce(array_agg(w.place ORDER BY w.place), '{}'),
        array_agg(w.version ORDER BY w.place) INTO stored, versions FROM written w;
    IF cardinality(stored) < allowed THEN
        RAISE EXCEPTION 'feeds have changed' USING ERRCODE = 'serialization_failure';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION is_document_kept(feed feeds, audience feed_audience)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
-- Whether an active subscription is sent the document itself.
SELECT coalesce(audience.as_is > 0
    OR audience.by_topic > 0 AND feed.format IN ('', 'part'), FALSE);
$$;

CREATE OR REPLACE FUNCTION refusal_of(given fetch_commit) RETURNS int
LANGUAGE plpgsql STABLE AS $$
-- Why a commit is not stored: NULL, its feed is gone; -1, the feed has changed since the
-- fetch was decided; -2, the commit lacks a document; -3, it lacks queries.
DECLARE
    feed feeds;
    audience feed_audience;
BEGIN
    SELECT * INTO feed FROM feeds WHERE id = given.feed_id AND state <> 'removed';
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF given.version <> (SELECT version FROM feed_hot WHERE feed_id = feed.id) THEN
        RETURN -1;
    END IF;
    SELECT * INTO audience FROM feed_audience WHERE feed_id = feed.id;
    IF given.needs_body AND is_document_kept(feed, audience) THEN
        RETURN -2;
    END IF;
    IF given.queries < (SELECT queries FROM log_head) THEN
        RETURN -3;
    END IF;
    RAISE EXCEPTION 'feeds have changed' USING ERRCODE = 'serialization_failure';
END $$;

CREATE OR REPLACE FUNCTION entries_of(given fetch_entry[], stored int[])
RETURNS fetch_entry[] LANGUAGE sql IMMUTABLE AS $$
SELECT ARRAY(SELECT e FROM unnest(given) e WHERE e.place = ANY(stored));
$$;

CREATE OR REPLACE FUNCTION put_fetch_states(commits fetch_commit[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE feed_outcomes o SET polling = c.outcome FROM unnest(commits) c
        WHERE o.feed_id = c.feed_id AND o.polling <> c.outcome;
    UPDATE schedule s SET next_fetch = c.next_fetch, pace = c.pace
        FROM unnest(commits) c WHERE s.feed_id = c.feed_id;
    INSERT INTO seen_sets SELECT feed_id, seen FROM unnest(commits)
        WHERE seen IS NOT NULL
        ON CONFLICT (feed_id) DO UPDATE SET seen = excluded.seen;
END $$;

CREATE OR REPLACE FUNCTION put_what_is_rare(commits fetch_commit[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    given record;
BEGIN
    INSERT INTO slices SELECT feed_id, slices FROM unnest(commits)
        WHERE slices IS NOT NULL
        ON CONFLICT (feed_id) DO UPDATE SET slices = excluded.slices;
    INSERT INTO feed_heads SELECT feed_id, head FROM unnest(commits)
        WHERE head IS NOT NULL
        ON CONFLICT (feed_id) DO UPDATE SET head = excluded.head;
    INSERT INTO inventories SELECT feed_id, inventory FROM unnest(commits)
        WHERE inventory IS NOT NULL
        ON CONFLICT (feed_id) DO UPDATE SET inventory = excluded.inventory;
    INSERT INTO raw_documents SELECT feed_id, raw_type, raw FROM unnest(commits)
        WHERE raw IS NOT NULL
        ON CONFLICT (feed_id) DO UPDATE SET content_type = excluded.content_type,
            body = excluded.body;
    UPDATE feeds f SET
        -- The name given to the feed is used while it has no title of its own.
        title = CASE c.more ->> 'title' WHEN '' THEN coalesce(
                (SELECT g.title FROM given_names g WHERE g.feed_id = f.id), '')
            ELSE coalesce(c.more ->> 'title', f.title) END,
        format = coalesce(c.more ->> 'format', f.format),
        state = coalesce(c.more ->> 'state', f.state),
        condition = coalesce(c.more ->> 'condition', f.condition),
        turned_at = CASE coalesce(c.more ->> 'state', f.state) WHEN f.state
            THEN f.turned_at ELSE c.at END,
        removed_at = CASE c.more ->> 'state' WHEN 'removed' THEN c.at
            ELSE f.removed_at END,
        condition_since = CASE coalesce(c.more ->> 'condition', f.condition)
            WHEN f.condition THEN f.condition_since ELSE c.at END
    FROM unnest(commits) c
    WHERE f.id = c.feed_id AND c.more ?| '{title,format,state,condition}';
    FOR given IN SELECT feed_id, at, more FROM unnest(commits)
        WHERE more ?| '{events,push,site}' ORDER BY place
    LOOP
        IF given.more ? 'events' AND are_events_wanted() THEN
            INSERT INTO event_queue (event, is_of_hub)
                SELECT e, FALSE FROM jsonb_array_elements_text(given.more -> 'events') e;
        END IF;
        IF given.more ? 'push' THEN
            PERFORM put_push(given.feed_id, given.more -> 'push', given.at);
        END IF;
        IF given.more ? 'site' THEN
            PERFORM put_site(given.feed_id, given.more -> 'site');
        END IF;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION require_same_audience(
    commits fetch_commit[], known_queries bigint
) RETURNS void LANGUAGE plpgsql AS $$
-- Raise an error if the audience has changed meanwhile: the call is repeated, and finds
-- the change.
BEGIN
    IF (SELECT queries FROM log_head) <> known_queries OR EXISTS (
        SELECT 1 FROM unnest(commits) c JOIN feed_audience a ON a.feed_id = c.feed_id
        WHERE c.needs_body AND (a.as_is > 0 OR a.by_topic > 0)
            AND keeps_document(a.feed_id)) THEN
        RAISE EXCEPTION 'the audience has changed' USING ERRCODE = 'serialization_failure';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION assign_positions(
    records fetch_record[], stored int[], have_matches boolean,
    OUT log_end bigint, OUT positions bigint[]
) LANGUAGE plpgsql AS $$
-- Assign positions to the records of the stored commits; NULL: of all. Without one are
-- matches of queries that are gone, or may not read the feed.
DECLARE
    total bigint := cardinality(records);
    are_kept boolean[];
BEGIN
    IF stored IS NOT NULL OR have_matches THEN
        are_kept := ARRAY(SELECT (stored IS NULL OR r.place = ANY(stored))
                AND (r.source IS NULL OR EXISTS (SELECT 1 FROM feeds t, feeds f
                    WHERE t.id = r.feed_id AND t.state = 'track' AND f.id = r.source
                        AND may_read(viewer_of(t.id), f)))
            FROM unnest(records) WITH ORDINALITY r ORDER BY r.ordinality);
        total := cardinality(array_remove(are_kept, FALSE));
    END IF;
    log_end := (SELECT head FROM log_head);
    IF total > 0 THEN
        UPDATE log_head SET head = log_end + total;
    END IF;
    IF (log_end + total) / 1000000 > log_end / 1000000 THEN
        PERFORM ensure_partitions();
    END IF;
    positions := CASE WHEN are_kept IS NULL
        THEN ARRAY(SELECT generate_series(log_end + 1, log_end + total))
        ELSE ARRAY(SELECT CASE WHEN k THEN log_end + sum(k::int) OVER (ORDER BY n) END
            FROM unnest(are_kept) WITH ORDINALITY a (k, n) ORDER BY n) END;
END $$;

CREATE OR REPLACE FUNCTION put_bodies(commits fetch_commit[], positions bigint[])
RETURNS void LANGUAGE sql AS $$
INSERT INTO bodies AS b SELECT feed_id, body_type, body,
        coalesce(positions[first + document], 0)
    FROM unnest(commits) WHERE body IS NOT NULL AND keeps_document(feed_id)
    ON CONFLICT (feed_id) DO UPDATE SET content_type = excluded.content_type,
        body = excluded.body, position = greatest(b.position, excluded.position);
$$;

CREATE OR REPLACE FUNCTION put_entries(
    given fetch_entry[], are_deleted boolean, positions bigint[]
) RETURNS bytea[] LANGUAGE plpgsql AS $$
-- Store entries, or deletions; returns what records say of each. A deletion keeps the
-- last body and the entry's date. New ids are in the order of what is given.
DECLARE
    refs bytea[];
BEGIN
    IF given = '{}' THEN
        RETURN '{}';
    END IF;
    WITH g AS MATERIALIZED (
        SELECT e.*, x.id AS known, coalesce(x.revision, 0) + 1 AS revision,
            CASE WHEN e.record > 0 THEN coalesce(positions[e.first + e.record], 0)
                ELSE 0 END AS position
        FROM unnest(given) WITH ORDINALITY e LEFT JOIN LATERAL (
            SELECT id, revision FROM entries WHERE feed_id = e.feed_id
                AND key_hash = e.key_hash LIMIT 1) x ON TRUE
    ), changed AS (
        UPDATE entries e SET revision = g.revision, deleted = are_deleted,
            sorted_at = CASE WHEN are_deleted THEN e.sorted_at
                ELSE coalesce(g.published, e.sorted_at) END,
            last_position = greatest(e.last_position, g.position),
            body = CASE WHEN are_deleted THEN e.body ELSE g.body END,
            unlisted = CASE WHEN are_deleted THEN e.unlisted ELSE g.is_unlisted END
        FROM g WHERE e.id = g.known
    ), added AS (
        INSERT INTO entries (feed_id, key_hash, key, revision, deleted, sorted_at,
            last_position, body, unlisted)
        SELECT feed_id, key_hash, key, 1, are_deleted, coalesce(published, at),
            position, body, is_unlisted
        FROM g WHERE known IS NULL ORDER BY ordinality RETURNING id
    )
    SELECT array_agg(reference(coalesce(k.known, a.ids[k.new_place]), k.revision,
            k.is_fresh) ORDER BY k.ordinality) INTO refs
        FROM (SELECT known, revision, is_fresh, ordinality, count(*)
                FILTER (WHERE known IS NULL) OVER (ORDER BY ordinality) AS new_place
            FROM g) k CROSS JOIN (SELECT array_agg(id ORDER BY id) AS ids FROM added) a;
    RETURN refs;
END $$;

CREATE OR REPLACE FUNCTION name_entries(named fetch_entry[], positions bigint[])
RETURNS bytea[] LANGUAGE plpgsql AS $$
-- What records say of each of these entries, which are kept as long as the records.
DECLARE
    refs bytea[];
    missing text;
BEGIN
    IF named = '{}' THEN
        RETURN '{}';
    END IF;
    WITH g AS MATERIALIZED (
        SELECT n.*, x.id, x.revision, positions[n.first + n.record] AS position
        FROM unnest(named) WITH ORDINALITY n LEFT JOIN LATERAL (
            SELECT id, revision FROM entries WHERE feed_id = n.feed_id
                AND key_hash = n.key_hash LIMIT 1) x ON TRUE
    ), moved AS (
        UPDATE entries e SET last_position = m.position
        FROM (SELECT id, max(position) AS position FROM g GROUP BY id) m
        WHERE e.id = m.id AND e.last_position < m.position
    )
    SELECT array_agg(reference(id, revision, is_fresh) ORDER BY ordinality),
        min(key) FILTER (WHERE id IS NULL) INTO refs, missing FROM g;
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'there is no entry % for its record', missing
            USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN refs;
END $$;

CREATE OR REPLACE FUNCTION reference(id bigint, revision bigint, is_fresh boolean)
RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
SELECT int8send(id) || int8send(revision << 1 | is_fresh::int);
$$;

CREATE OR REPLACE FUNCTION append_records(
    given fetch_record[], positions bigint[], named fetch_entry[], refs bytea[]
) RETURNS records[] LANGUAGE plpgsql SET enable_hashjoin = on AS $$
-- Append the records that have positions; returns those that somebody may receive.
DECLARE
    made records[];
    failing bigint[];
BEGIN
    WITH told AS (
        SELECT n.first + n.record AS number,
            string_agg(n.reference, ''::bytea ORDER BY n.number) AS refs
        FROM unnest(refs, named) n (reference) WHERE n.record > 0 GROUP BY 1
    ), appended AS (
        INSERT INTO records AS r
        SELECT g.position, g.at, g.feed_id, g.kind, g.news, g.status,
            coalesce(t.refs, ''), g.is_superseded, g.source, NULL
        FROM unnest(positions, given) WITH ORDINALITY g (position)
        LEFT JOIN told t ON t.number = g.ordinality WHERE g.position IS NOT NULL
        RETURNING r AS record, r.kind, r.feed_id
    )
    SELECT coalesce(array_agg(record) FILTER (WHERE kind <> 'baseline'), '{}'),
        array_agg(feed_id) FILTER (WHERE kind = 'error') INTO made, failing
        FROM appended;
    IF failing IS NOT NULL THEN
        DELETE FROM awaited_errors WHERE feed_id = ANY(failing);
    END IF;
    RETURN made;
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
