-- The log: what fetches found, records, and whom they are for.

CREATE OR REPLACE FUNCTION packed(value jsonb, name text) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$
SELECT decode(value ->> name, 'base64');
$$;

CREATE OR REPLACE FUNCTION note_poll(feed bigint, hot bytea, poll bytea)
RETURNS void LANGUAGE plpgsql AS $$
-- The latest eight polls are in the feed's row; when there are as many they move to the
-- earlier ones, of which 64 are kept.
BEGIN
    IF poll IS NOT NULL THEN
        INSERT INTO earlier_polls AS e
            SELECT feed_id, recent_polls FROM feed_hot
            WHERE feed_id = feed AND length(recent_polls) >= 112
        ON CONFLICT (feed_id) DO UPDATE SET polls = substr(e.polls || excluded.polls,
            greatest(1, length(e.polls) + length(excluded.polls) - 895));
    END IF;
    UPDATE feed_hot SET polling = hot, recent_polls = CASE
            WHEN poll IS NULL THEN recent_polls
            WHEN length(recent_polls) >= 112 THEN poll ELSE recent_polls || poll END
        WHERE feed_id = feed;
END $$;

CREATE OR REPLACE FUNCTION commit_quiet(
    feed_ids bigint[], hot bytea[], cold bytea[], urls text[], times bigint[],
    paces bigint[], polls bytea[], versions bigint[]
) RETURNS bigint[] LANGUAGE plpgsql AS $$
-- What fetches change that have found nothing: the version of each one's feed; NULL: it
-- is gone; less than 0: it is not as it was decided on.
DECLARE
    present bigint[];
    outcomes bigint[];
BEGIN
    PERFORM 1 FROM feeds WHERE id = ANY(feed_ids) ORDER BY id FOR NO KEY UPDATE;
    SELECT array_agg(CASE WHEN f.id IS NULL THEN NULL
            WHEN f.version = coalesce(g.version, f.version)
                THEN f.version + (g.cold IS NOT NULL)::int
            ELSE -1 END ORDER BY g.place),
        coalesce(array_agg(f.id) FILTER
            (WHERE f.version = coalesce(g.version, f.version)), '{}')
        INTO outcomes, present
    FROM unnest(feed_ids, versions, cold) WITH ORDINALITY g (id, version, cold, place)
    LEFT JOIN feeds f ON f.id = g.id AND f.state <> 'removed';
    INSERT INTO earlier_polls AS e
        SELECT p.feed_id, p.recent_polls FROM unnest(feed_ids, polls) g (id, poll)
        JOIN feed_hot p ON p.feed_id = g.id
        WHERE g.poll IS NOT NULL AND length(p.recent_polls) >= 112
            AND g.id = ANY(present)
        ORDER BY p.feed_id
    ON CONFLICT (feed_id) DO UPDATE SET polls = substr(e.polls || excluded.polls,
        greatest(1, length(e.polls) + length(excluded.polls) - 895));
    UPDATE feed_hot p SET polling = g.polling, recent_polls = CASE
            WHEN g.poll IS NULL THEN p.recent_polls
            WHEN length(p.recent_polls) >= 112 THEN g.poll
            ELSE p.recent_polls || g.poll END
        FROM unnest(feed_ids, hot, polls) g (id, polling, poll)
        WHERE p.feed_id = g.id AND g.id = ANY(present);
    UPDATE schedule s SET next_fetch = g.next_fetch, pace = g.pace
        FROM unnest(feed_ids, times, paces) g (id, next_fetch, pace)
        WHERE s.feed_id = g.id AND g.id = ANY(present);
    UPDATE feeds f SET polling = g.cold, fetch_url = g.url, version = f.version + 1
        FROM unnest(feed_ids, cold, urls) g (id, cold, url)
        WHERE f.id = g.id AND g.cold IS NOT NULL AND g.id = ANY(present);
    RETURN outcomes;
END $$;

CREATE OR REPLACE FUNCTION commit_news(units jsonb)
RETURNS TABLE (outcome text, first bigint, last bigint, version bigint)
LANGUAGE plpgsql AS $$
-- What fetches found, in their order: stored, with the positions of its records and its
-- feed's version from then on; gone, of a feed that was removed; stale, of one that is
-- not as it was decided on; or what it lacks: a document, or queries.
DECLARE
    unit jsonb;
BEGIN
    PERFORM 1 FROM feeds f JOIN jsonb_array_elements(units) u
        ON f.id = (u ->> 'feed_id')::bigint ORDER BY f.id FOR NO KEY UPDATE OF f;
    IF jsonb_path_exists(units, '$[*].records[*]') THEN
        PERFORM hold_audience();
    END IF;
    FOR unit IN SELECT value FROM jsonb_array_elements(units) LOOP
        SELECT c.outcome, c.first, c.last, c.version INTO outcome, first, last, version
            FROM commit_one((unit ->> 'feed_id')::bigint, unit) c;
        RETURN NEXT;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION commit_one(feed bigint, unit jsonb)
RETURNS TABLE (outcome text, first bigint, last bigint, version bigint)
LANGUAGE plpgsql AS $$
DECLARE
    now bigint := unit ->> 'at';
    matches jsonb[] := '{}';
    count bigint;
    number bigint;
    versions bigint;
BEGIN
    SELECT f.version + 1 INTO version FROM feeds f
        WHERE f.id = feed AND f.state <> 'removed';
    IF version IS NULL OR version - 1 <> (unit ->> 'version')::bigint THEN
        outcome := CASE WHEN version IS NULL THEN 'gone' ELSE 'stale' END;
        RETURN NEXT;
        RETURN;
    END IF;
    IF (unit ->> 'needs_body')::boolean AND keeps_document(feed) THEN
        outcome := 'body';
        RETURN NEXT;
        RETURN;
    END IF;
    IF unit ? 'matches' THEN
        matches := ARRAY(SELECT m FROM jsonb_array_elements(unit -> 'matches') m
            JOIN feeds t ON t.id = (m ->> 'feed_id')::bigint AND t.state = 'track'
            JOIN feeds f ON f.id = feed
            WHERE may_read(viewer_of(t.id), f));
    END IF;
    count := jsonb_array_length(unit -> 'records') + cardinality(matches);
    SELECT h.head, h.queries INTO last, versions FROM log_head h;
    IF count > 0 AND (unit ->> 'queries')::bigint < versions THEN
        outcome := 'queries';
        RETURN NEXT;
        RETURN;
    END IF;
    first := last + 1;
    IF count > 0 THEN
        IF (last + count) / 1000000 > last / 1000000 THEN
            PERFORM ensure_partitions();
        END IF;
        UPDATE log_head h SET head = h.head + count RETURNING h.head INTO last;
    END IF;
    PERFORM put_feed(feed, unit, now);
    PERFORM put_documents(feed, unit, first);
    PERFORM put_entries(feed, unit -> 'deletions', now, first);
    PERFORM put_entries(feed, unit -> 'entries', now, first);
    FOR number IN 0 .. jsonb_array_length(unit -> 'records') - 1 LOOP
        PERFORM append_record(first + number, feed, unit -> 'records' -> number::int, now);
    END LOOP;
    FOR number IN 1 .. cardinality(matches) LOOP
        PERFORM append_match(first + jsonb_array_length(unit -> 'records') + number - 1,
            feed, matches[number], packed(unit, 'match_status'), now);
    END LOOP;
    outcome := 'stored';
    RETURN NEXT;
END $$;

CREATE OR REPLACE FUNCTION put_feed(feed bigint, unit jsonb, now bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE feeds f SET polling = coalesce(packed(unit, 'cold'), f.polling),
        fetch_url = n.fetch_url, unlisted = n.unlisted, title = n.title,
        format = n.format, state = n.state, condition = n.condition,
        turned_at = CASE f.state WHEN n.state THEN f.turned_at ELSE now END,
        removed_at = CASE unit ->> 'state' WHEN 'removed' THEN now ELSE f.removed_at END,
        condition_since =
            CASE f.condition WHEN n.condition THEN f.condition_since ELSE now END,
        version = f.version + 1
    FROM (
        SELECT o.id, unit ->> 'fetch_url' AS fetch_url,
            (unit ->> 'unlisted')::boolean AS unlisted,
            -- The name it was given stands while it has none of its own.
            CASE WHEN unit ->> 'title' IS NULL THEN o.title
                WHEN unit ->> 'title' = '' THEN coalesce(
                    (SELECT g.title FROM given_names g WHERE g.feed_id = feed), '')
                ELSE unit ->> 'title' END AS title,
            coalesce(unit ->> 'format', o.format) AS format,
            coalesce(unit ->> 'state', o.state) AS state,
            coalesce(unit ->> 'condition', o.condition) AS condition
        FROM feeds o WHERE o.id = feed
    ) n WHERE f.id = n.id;
    PERFORM note_poll(feed, packed(unit, 'hot'), packed(unit, 'poll'));
    UPDATE schedule SET next_fetch = (unit ->> 'next_fetch')::bigint,
        pace = (unit ->> 'pace')::smallint WHERE feed_id = feed;
    IF unit ? 'events' AND are_events_wanted() THEN
        INSERT INTO event_queue (event, is_of_hub)
            SELECT e, FALSE FROM jsonb_array_elements_text(unit -> 'events') e;
    END IF;
    IF unit ? 'push' THEN
        PERFORM put_push(feed, unit -> 'push', now);
    END IF;
    IF unit ? 'site' THEN
        PERFORM put_site(feed, unit -> 'site');
    END IF;
END $$;

CREATE OR REPLACE FUNCTION put_documents(feed bigint, unit jsonb, first bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF unit ? 'seen' THEN
        INSERT INTO seen_sets VALUES (feed, packed(unit, 'seen'))
            ON CONFLICT (feed_id) DO UPDATE SET seen = excluded.seen;
    END IF;
    IF unit ? 'slices' THEN
        INSERT INTO slices VALUES (feed, packed(unit, 'slices'))
            ON CONFLICT (feed_id) DO UPDATE SET slices = excluded.slices;
    END IF;
    IF unit ? 'head' THEN
        INSERT INTO feed_heads VALUES (feed, packed(unit, 'head'))
            ON CONFLICT (feed_id) DO UPDATE SET head = excluded.head;
    END IF;
    IF unit ? 'inventory' THEN
        INSERT INTO inventories VALUES (feed, packed(unit, 'inventory'))
            ON CONFLICT (feed_id) DO UPDATE SET inventory = excluded.inventory;
    END IF;
    IF unit ? 'raw' THEN
        INSERT INTO raw_documents
            VALUES (feed, unit -> 'raw' ->> 'content_type', packed(unit -> 'raw', 'body'))
            ON CONFLICT (feed_id) DO UPDATE SET content_type = excluded.content_type,
                body = excluded.body;
    END IF;
    IF unit ? 'body' AND keeps_document(feed) THEN
        INSERT INTO bodies AS b VALUES (feed, unit -> 'body' ->> 'content_type',
            packed(unit -> 'body', 'body'),
            coalesce(first + (unit ->> 'document')::bigint, 0))
        ON CONFLICT (feed_id) DO UPDATE SET content_type = excluded.content_type,
            body = excluded.body, position = greatest(b.position, excluded.position);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION put_entries(feed bigint, given jsonb, now bigint, first bigint)
RETURNS void LANGUAGE plpgsql AS $$
-- A deletion keeps the last body and the entry's date.
BEGIN
    IF jsonb_array_length(given) = 0 THEN
        RETURN;
    END IF;
    WITH g AS (
        SELECT decode(e ->> 'hash', 'base64') AS hash, e ->> 'key' AS key,
            (e ->> 'deleted')::boolean AS deleted, (e ->> 'published')::bigint AS published,
            coalesce(first + (e ->> 'record')::bigint, 0) AS position,
            decode(e ->> 'body', 'base64') AS body, (e ->> 'unlisted')::boolean AS unlisted,
            place
        FROM jsonb_array_elements(given) WITH ORDINALITY a (e, place)
    ), known AS (
        UPDATE entries e SET revision = e.revision + 1, deleted = g.deleted,
            sorted_at = CASE WHEN g.deleted THEN e.sorted_at
                ELSE coalesce(g.published, e.sorted_at) END,
            last_position = greatest(e.last_position, g.position),
            body = CASE WHEN g.deleted THEN e.body ELSE g.body END,
            unlisted = CASE WHEN g.deleted THEN e.unlisted ELSE g.unlisted END
        FROM g WHERE e.feed_id = feed AND e.key_hash = g.hash
        RETURNING e.key_hash
    )
    INSERT INTO entries (feed_id, key_hash, key, revision, deleted, sorted_at,
        last_position, body, unlisted)
    SELECT feed, g.hash, g.key, 1, g.deleted, coalesce(g.published, now), g.position,
        g.body, g.unlisted
    FROM g WHERE g.hash NOT IN (SELECT key_hash FROM known) ORDER BY g.place;
END $$;

CREATE OR REPLACE FUNCTION refer(feed bigint, named jsonb, given bigint)
RETURNS bytea LANGUAGE plpgsql AS $$
-- Ids, revisions and freshness of entries, packed; they are kept as long as the record.
DECLARE
    refs bytea;
    number bigint;
BEGIN
    WITH g AS (
        SELECT decode(n ->> 0, 'base64') AS hash, (n ->> 1)::boolean::int AS fresh, place
        FROM jsonb_array_elements(named) WITH ORDINALITY a (n, place)
    ), moved AS (
        UPDATE entries e SET last_position = given
        WHERE e.feed_id = feed AND e.key_hash IN (SELECT hash FROM g)
            AND e.last_position < given
    )
    SELECT coalesce(string_agg(int8send(e.id) || int8send(e.revision << 1 | g.fresh),
        ''::bytea ORDER BY g.place), ''), count(*) INTO refs, number
    FROM g JOIN entries e ON e.feed_id = feed AND e.key_hash = g.hash;
    IF number < jsonb_array_length(named) THEN
        RAISE EXCEPTION 'feed % has no entry % for its record', feed, (
            SELECT n ->> 2 FROM jsonb_array_elements(named) n WHERE NOT EXISTS (
                SELECT 1 FROM entries WHERE feed_id = feed
                AND key_hash = decode(n ->> 0, 'base64')) LIMIT 1
            ) USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN refs;
END $$;

CREATE OR REPLACE FUNCTION append_record(
    given bigint, feed bigint, record jsonb, now bigint
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    news bigint := record ->> 'news';
BEGIN
    INSERT INTO records (position, at, feed_id, kind, news, status, refs, is_superseded)
    VALUES (given, now, feed, record ->> 'kind', news, packed(record, 'status'),
        refer(feed, record -> 'entries', given),
        (record ->> 'is_superseded')::boolean);
    IF record ->> 'kind' = 'error' THEN
        DELETE FROM awaited_errors WHERE feed_id = feed;
    END IF;
    IF record ->> 'kind' <> 'baseline' THEN
        PERFORM fan_out(given, feed, news);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION append_match(
    given bigint, source bigint, match jsonb, status bytea, now bigint
) RETURNS void LANGUAGE plpgsql AS $$
-- A record of a track query; its entries are kept as long as it is.
DECLARE
    news bigint := match ->> 'news';
    query bigint := match ->> 'feed_id';
BEGIN
    INSERT INTO records (position, at, feed_id, kind, news, status, refs, is_superseded,
        source_id)
    VALUES (given, now, query, 'entries', news, status,
        refer(source, match -> 'entries', given), FALSE, source);
    PERFORM fan_out(given, query, news);
END $$;

CREATE OR REPLACE FUNCTION fan_out(given bigint, feed bigint, news bigint) RETURNS void
LANGUAGE plpgsql AS $$
-- If anybody receives the record. Whoever subscribes from here on stands above it. Of
-- few subscribers each is asked now; more are asked when the fan-out is split.
DECLARE
    number bigint;
BEGIN
    SELECT subscribers INTO number FROM feed_audience WHERE feed_id = feed;
    IF number > 20 OR number > 0 AND EXISTS (SELECT 1 FROM subscriptions s
        WHERE s.feed_id = feed AND s.state = 'active' AND s.from_position < given
        AND s.wants & news <> 0) THEN
        INSERT INTO fanouts VALUES (given, feed, 0);
        INSERT INTO fanout_turns AS t VALUES (feed, given, 0)
            ON CONFLICT (feed_id) DO UPDATE SET first = least(t.first, excluded.first);
    END IF;
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
-- How many positions were trimmed: records, unless these went with their feed before.
-- Nothing goes that a fan-out or a chunk still has to deliver. A retry holds up the soft
-- limits but not the hard ones; then what it missed becomes a dead letter.
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
-- The end of the oldest records that a short transaction can drop, one at least.
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
-- What retries wanted of what goes becomes a dead letter.
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
-- A partition goes as a whole once all of it is trimmed; until then its records are
-- only passed over.
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
-- Of the log, those that are trimmed wholly; that needs all of the log for a moment.
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
