-- Deliveries: chunks split off, leased and acknowledged; retries; dead letters.

CREATE OR REPLACE FUNCTION pending_indexes(outcomes bytea) RETURNS SETOF int
LANGUAGE sql IMMUTABLE AS $$
SELECT i FROM generate_series(0, length(outcomes) / 4 - 1) i
WHERE substr(outcomes, i * 4 + 1, 2) = '\xffff' ORDER BY i;
$$;

CREATE OR REPLACE FUNCTION answer_time(settled bigint, times bytea, index int)
RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
-- When a member's delivery was over: the time with these last 32 bits in the 24 days
-- before the chunk's last acknowledgement. NULL if that is not known.
SELECT CASE WHEN bits <> 0 THEN settled - CASE WHEN before < 2147483648 THEN before
    ELSE 0 END END
FROM (SELECT bits, (settled - bits) & 4294967295 AS before FROM (
    SELECT ('x' || encode(substr(times, index * 4 + 1, 4), 'hex'))::bit(32)::bigint AS bits
    ) b) a;
$$;

CREATE OR REPLACE FUNCTION acknowledge(
    chunk bigint, lease bigint, indexes int[], given bytea[], now bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
-- Note outcomes in a chunk; once no member is pending, it moves to the history. Returns
-- FALSE, and changes nothing, unless the lease holds. Each outcome is followed by the time
-- of the answer; a former program does not tell it.
DECLARE
    noted bytea;
    answered bytea;
    number int;
BEGIN
    SELECT outcomes, coalesce(times, decode(repeat('00', length(outcomes)), 'hex'))
        INTO noted, answered FROM chunks WHERE id = chunk AND lease_id = lease
        FOR UPDATE;
    IF NOT FOUND THEN
        RETURN FALSE;
    END IF;
    FOR number IN 1 .. cardinality(indexes) LOOP
        noted := overlay(noted PLACING substr(given[number], 1, 4)
            FROM indexes[number] * 4 + 1 FOR 4);
        IF length(given[number]) = 8 THEN
            answered := overlay(answered PLACING substr(given[number], 5, 4)
                FROM indexes[number] * 4 + 1 FOR 4);
        END IF;
    END LOOP;
    IF EXISTS (SELECT 1 FROM pending_indexes(noted)) THEN
        UPDATE chunks SET outcomes = noted, times = answered, at = now WHERE id = chunk;
    ELSE
        INSERT INTO deliveries (feed_id, position, at, first_id, last_id, members,
            outcomes, times)
        SELECT feed_id, position, now, members[1], members[cardinality(members)],
            members, noted, answered FROM chunks WHERE id = chunk;
        DELETE FROM chunks WHERE id = chunk;
    END IF;
    RETURN TRUE;
END $$;

-- --- splitting ---

CREATE OR REPLACE FUNCTION owe_to_paused(
    given bigint, feed bigint, ids bigint[], now bigint
) RETURNS bigint[] LANGUAGE plpgsql AS $$
-- Open a retry, from that record on, for the paused ones of these subscriptions;
-- returns which they are.
DECLARE
    opened bigint[];
BEGIN
    IF NOT EXISTS (SELECT 1 FROM subscriptions
        WHERE feed_id = feed AND paused_at IS NOT NULL) THEN
        RETURN '{}';
    END IF;
    WITH o AS (
        INSERT INTO retries (subscription_id, feed_id, position, attempts, next_try,
            failing_since, last_status, last_error, lease_id, due, is_paused)
        SELECT id, feed_id, given - 1, 0, now, now, 0, 'it was paused', 0, now, TRUE
        FROM subscriptions WHERE feed_id = feed AND paused_at IS NOT NULL
            AND id = ANY(ids) AND from_position < given ORDER BY id
        ON CONFLICT (subscription_id) DO NOTHING RETURNING subscription_id
    ) SELECT coalesce(array_agg(subscription_id), '{}') INTO opened FROM o;
    RETURN opened;
END $$;

CREATE OR REPLACE FUNCTION next_fanout() RETURNS SETOF fanouts LANGUAGE plpgsql AS $$
-- The fan-out to split next: of the feeds without a chunk under way, the one whose last
-- turn is longest ago; if all have chunks, of those with fewer than four the one whose
-- last chunk is the oldest.
BEGIN
    RETURN QUERY SELECT f.* FROM fanout_turns t JOIN fanouts f ON f.position = t.first
        WHERE NOT EXISTS (SELECT 1 FROM chunks c WHERE c.feed_id = t.feed_id)
        ORDER BY t.turn, t.first LIMIT 1;
    IF NOT FOUND THEN
        RETURN QUERY SELECT f.* FROM (
                SELECT feed_id, min(position) AS first, max(id) AS last, count(*) AS n
                FROM chunks GROUP BY feed_id
            ) c JOIN fanout_turns t ON t.feed_id = c.feed_id AND t.first = c.first
            JOIN fanouts f ON f.position = t.first
            WHERE c.n < 4 ORDER BY c.last LIMIT 1;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION hurry_retries(given bigint, feed bigint, now bigint)
RETURNS void LANGUAGE sql AS $$
-- Make retries due that may try again because there is news, those tried longest ago
-- first.
UPDATE retries SET due = now WHERE subscription_id IN (
    SELECT g.subscription_id FROM retries g
    JOIN subscriptions s ON s.id = g.subscription_id
    JOIN records r ON r.position = given AND s.wants & r.news <> 0
    WHERE g.feed_id = feed AND g.news_from <= now AND g.due > now
        AND NOT g.is_paused AND g.lease_id = 0
    ORDER BY g.news_from LIMIT 1000);
$$;

CREATE OR REPLACE FUNCTION drop_fanout(given bigint, feed bigint) RETURNS void
LANGUAGE plpgsql AS $$
-- Drop a fan-out that is split; the feed's next one takes over its turn.
DECLARE
    following bigint;
BEGIN
    DELETE FROM fanouts WHERE position = given;
    SELECT min(position) INTO following FROM fanouts WHERE feed_id = feed;
    IF following IS NULL THEN
        DELETE FROM fanout_turns WHERE feed_id = feed;
    ELSE
        UPDATE fanout_turns SET first = following WHERE feed_id = feed;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION split_fanouts(
    lease bigint, holder bigint, until bigint, now bigint, most bigint,
    OUT made bigint[], OUT has_looked_at_all boolean
) LANGUAGE plpgsql AS $$
-- Make up to `most` chunks; looks at 20,000 subscriptions at most, so that it ends soon
-- even if none of them wants the record.
DECLARE
    pages int := 20;
    next fanouts;
    taken bigint[];
    page bigint[];
    owing bigint[];
    last_id bigint;
    looked_at bigint;
    added bigint;
    is_split boolean;
BEGIN
    made := '{}';
    has_looked_at_all := TRUE;
    WHILE cardinality(made) < most LOOP
        IF pages = 0 THEN
            has_looked_at_all := FALSE;
            RETURN;
        END IF;
        SELECT * INTO next FROM next_fanout();
        IF NOT FOUND THEN
            RETURN;
        END IF;
        IF next.after_id = 0 THEN
            PERFORM hurry_retries(next.position, next.feed_id, now);
        END IF;
        taken := '{}';
        is_split := FALSE;
        WHILE pages > 0 AND cardinality(taken) < 500 AND NOT is_split LOOP
            pages := pages - 1;
            SELECT coalesce(array_agg(p.id ORDER BY p.id) FILTER (WHERE p.is_wanted), '{}'),
                max(p.id), count(*) INTO page, last_id, looked_at
            FROM (
                SELECT s.id, s.from_position < next.position AND s.wants & r.news <> 0
                    AND NOT EXISTS (SELECT 1 FROM retries g
                        WHERE g.subscription_id = s.id) AS is_wanted
                FROM (SELECT id, from_position, wants FROM subscriptions
                    WHERE feed_id = next.feed_id AND state = 'active'
                        AND id > next.after_id
                    ORDER BY id LIMIT 1000) s, records r WHERE r.position = next.position
            ) p;
            IF cardinality(page) >= 500 - cardinality(taken) THEN
                page := page[1 : 500 - cardinality(taken)];
                next.after_id := page[cardinality(page)];
            ELSE
                is_split := looked_at < 1000;
                next.after_id := coalesce(last_id, next.after_id);
            END IF;
            owing := owe_to_paused(next.position, next.feed_id, page, now);
            taken := taken || ARRAY(SELECT m FROM unnest(page) WITH ORDINALITY u (m, n)
                WHERE m <> ALL(owing) ORDER BY n);
        END LOOP;
        IF is_split THEN
            PERFORM drop_fanout(next.position, next.feed_id);
        ELSE
            UPDATE fanouts SET after_id = next.after_id WHERE position = next.position;
        END IF;
        IF cardinality(taken) > 0 THEN
            INSERT INTO chunks (position, feed_id, at, lease_id, incarnation, due, members,
                outcomes)
            VALUES (next.position, next.feed_id, now, lease, holder, until, taken,
                decode(repeat('ffff0000', cardinality(taken)), 'hex'))
            RETURNING id INTO added;
            UPDATE fanout_turns SET turn = added WHERE feed_id = next.feed_id;
            made := made || added;
        END IF;
    END LOOP;
    has_looked_at_all := pages > 0;
END $$;

-- --- claiming ---

CREATE OR REPLACE FUNCTION reclaim_chunks(
    lease bigint, holder bigint, until bigint, lease_now bigint, now bigint, most bigint
) RETURNS bigint[] LANGUAGE plpgsql AS $$
-- Claim unfinished chunks whose lease is over. Members that ended, failed or were
-- paused after the chunk was split need nothing more from it; without other members it
-- is finished.
DECLARE
    ids bigint[] := ARRAY(SELECT id FROM chunks WHERE due <= lease_now
        ORDER BY position, id LIMIT most FOR UPDATE SKIP LOCKED);
    chunk chunks;
    unable int[];
BEGIN
    FOR chunk IN UPDATE chunks SET lease_id = lease, incarnation = holder, due = until
        WHERE id = ANY(ids) RETURNING *
    LOOP
        PERFORM owe_to_paused(chunk.position, chunk.feed_id,
            ARRAY(SELECT chunk.members[i + 1] FROM pending_indexes(chunk.outcomes) i), now);
        unable := ARRAY(SELECT i FROM pending_indexes(chunk.outcomes) i
            LEFT JOIN subscriptions s ON s.id = chunk.members[i + 1]
            WHERE s.state IS DISTINCT FROM 'active' OR s.from_position >= chunk.position
                OR s.paused_at IS NOT NULL
                OR EXISTS (SELECT 1 FROM retries g
                    WHERE g.subscription_id = chunk.members[i + 1]));
        IF cardinality(unable) > 0 THEN
            PERFORM acknowledge(chunk.id, lease, unable,
                array_fill('\x00000000'::bytea, ARRAY[cardinality(unable)]), now);
        END IF;
    END LOOP;
    RETURN ARRAY(SELECT id FROM chunks WHERE id = ANY(ids) ORDER BY position, id);
END $$;

CREATE OR REPLACE FUNCTION claim_chunks(
    lease bigint, holder bigint, lasting bigint, now bigint, most bigint, only_new boolean
) RETURNS TABLE (
    is_partial boolean, id bigint, lease_id bigint, outcomes bytea, members text,
    "position" bigint, at bigint, feed_id bigint, kind text, status bytea, refs bytea,
    is_superseded boolean, source_id bigint, event text
) LANGUAGE plpgsql AS $$
-- Claim chunks, for so many milliseconds. A row without an id says that none was found so
-- far, and that there is more to look through.
DECLARE
    claimed bigint[] := '{}';
    lease_now bigint;
    split record;
BEGIN
    IF only_new AND NOT EXISTS (SELECT 1 FROM fanout_turns) THEN
        RETURN;
    END IF;
    PERFORM require_term(holder);
    PERFORM hold_audience();
    lease_now := lease_time(now);
    IF NOT only_new THEN
        claimed := reclaim_chunks(lease, holder, lease_now + lasting, lease_now, now, most);
    END IF;
    SELECT * INTO split FROM split_fanouts(lease, holder, lease_now + lasting, now,
        most - cardinality(claimed));
    claimed := claimed || split.made;
    IF cardinality(claimed) = 0 THEN
        IF NOT split.has_looked_at_all THEN
            is_partial := TRUE;
            RETURN NEXT;
        END IF;
        RETURN;
    END IF;
    RETURN QUERY
    SELECT FALSE, c.id, c.lease_id, c.outcomes, (
            SELECT json_agg(json_build_array(s.id, s.account_id, s.topic, s.feed_id,
                s.callback, s.secret, s.algorithm, s.format, s.updates, s.batch, s.state,
                s.from_position, s.lease_end, s.created_at, s.exhausted, s.ended_reason,
                s.former_secret, s.former_until, m.n - 1) ORDER BY m.n)::text
            FROM unnest(c.members) WITH ORDINALITY m (id, n)
            JOIN stored_subscriptions s ON s.id = m.id),
        r.position, r.at, r.feed_id, r.kind, r.status, r.refs, r.is_superseded,
        r.source_id, r.event
    FROM unnest(claimed) WITH ORDINALITY a (chunk, place)
    JOIN chunks c ON c.id = a.chunk JOIN records r ON r.position = c.position
    ORDER BY a.place;
END $$;

CREATE OR REPLACE FUNCTION renew_chunks(
    ids bigint[], lease bigint, holder bigint, lasting bigint, now bigint
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM require_term(holder);
    UPDATE chunks SET due = lease_time(now) + lasting
        WHERE id = ANY(ids) AND lease_id = lease;
END $$;

CREATE OR REPLACE FUNCTION claim_retrying(
    lease bigint, holder bigint, lasting bigint, now bigint, most bigint
) RETURNS SETOF stored_retries LANGUAGE plpgsql AS $$
-- Claim retries that are due, and those whose lease is over: whose holder has neither
-- given them up nor been removed.
DECLARE
    lease_now bigint := lease_time(now);
    ids bigint[];
BEGIN
    PERFORM require_term(holder);
    ids := ARRAY(SELECT subscription_id FROM retries
        WHERE lease_id <> 0 AND leased_until <= lease_now AND NOT is_paused
        ORDER BY leased_until LIMIT most FOR UPDATE SKIP LOCKED);
    ids := ids || ARRAY(SELECT subscription_id FROM retries
        WHERE due <= now AND NOT is_paused AND lease_id = 0
        ORDER BY due, subscription_id LIMIT most - cardinality(ids)
        FOR UPDATE SKIP LOCKED);
    UPDATE retries SET lease_id = lease, incarnation = holder, due = now + lasting,
        leased_until = lease_now + lasting WHERE subscription_id = ANY(ids);
    RETURN QUERY SELECT v.* FROM unnest(ids) WITH ORDINALITY a (id, place)
        JOIN stored_retries v ON v.id = a.id ORDER BY a.place;
END $$;

-- --- retries ---

CREATE OR REPLACE FUNCTION wanted_range(
    wanted bigint, after bigint, upto bigint, skip_after bigint, skip_to bigint,
    OUT first bigint, OUT last bigint
) LANGUAGE sql STABLE AS $$
-- The first and the last wanted record in (after, upto], without those in (skip_after,
-- skip_to].
SELECT min(r.position), max(r.position)
FROM subscriptions s JOIN kept_records r ON r.feed_id = s.feed_id
WHERE s.id = wanted AND r.position > after AND r.position <= upto
    AND NOT (r.position > coalesce(skip_after, 0) AND r.position <= coalesce(skip_to, 0))
    AND s.wants & r.news <> 0;
$$;

CREATE OR REPLACE FUNCTION last_passed(wanted bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$
-- The position up to which fan-out has served the subscription, or skipped it.
SELECT coalesce((SELECT min(f.position) - 1 FROM fanouts f
    WHERE f.feed_id = s.feed_id AND f.after_id < s.id), (SELECT head FROM log_head))
FROM subscriptions s WHERE s.id = wanted;
$$;

CREATE OR REPLACE FUNCTION close_retry(wanted bigint, upto bigint) RETURNS void
LANGUAGE sql AS $$
-- Close the retry: from here on fan-out serves the subscription again.
DELETE FROM retries WHERE subscription_id = wanted;
UPDATE subscriptions SET from_position = greatest(from_position, upto)
    WHERE id = wanted AND from_position < upto;
$$;

CREATE OR REPLACE FUNCTION open_retry(opened jsonb, holder bigint, now bigint)
RETURNS void LANGUAGE sql AS $$
-- Open a retry for an active subscription. One that is open already stays as it is, but
-- must not stand above the record that was not delivered.
INSERT INTO retries AS g (subscription_id, feed_id, position, attempts, next_try,
    failing_since, last_status, last_error, lease_id, incarnation, leased_until, due,
    tried_to, news_from, is_paused)
SELECT id, feed_id, (opened ->> 'position')::bigint, (opened ->> 'attempts')::bigint,
    (opened ->> 'next_try')::bigint, (opened ->> 'failing_since')::bigint,
    (opened ->> 'last_status')::bigint, opened ->> 'last_error',
    (opened ->> 'lease_id')::bigint, holder,
    lease_time(now) + (opened ->> 'next_try')::bigint - now,
    (opened ->> 'next_try')::bigint, (opened ->> 'tried_to')::bigint, (opened ->> 'news_from')::bigint,
    paused_at IS NOT NULL
FROM subscriptions WHERE id = (opened ->> 'id')::bigint AND state = 'active'
ON CONFLICT (subscription_id) DO UPDATE
    SET position = excluded.position, tried_to = excluded.tried_to
    WHERE excluded.position < g.position;
$$;

CREATE OR REPLACE FUNCTION move_retry(moved jsonb, now bigint) RETURNS text
LANGUAGE plpgsql AS $$
-- Apply the outcome of a try. A retry never goes back: trimming may have moved it
-- further than the caller knew. The subscription counts as told what it missed once a
-- request for a later record has succeeded.
DECLARE
    whose bigint := moved ->> 'id';
    given bigint := moved ->> 'position';
    is_finished boolean := moved ->> 'finished';
    is_told boolean := (moved ->> 'last_status')::bigint BETWEEN 200 AND 299;
    known retries;
    newer record;
BEGIN
    SELECT * INTO known FROM retries
        WHERE subscription_id = whose AND lease_id = (moved ->> 'lease_id')::bigint
        FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'lost';
    END IF;
    IF is_finished THEN
        SELECT * INTO newer FROM wanted_range(whose, greatest(known.position, given),
            9223372036854775807, known.skip_after, known.skip_to);
        IF newer.first IS NULL THEN
            PERFORM close_retry(whose,
                greatest(known.position, given, coalesce(known.skip_to, 0)));
            RETURN 'done';
        END IF;
    END IF;
    UPDATE retries SET position = greatest(position, given),
        failing_since = CASE WHEN given > position THEN now ELSE failing_since END,
        missed_first = CASE WHEN NOT (given > position AND is_told) THEN missed_first END,
        missed_last = CASE WHEN NOT (given > position AND is_told) THEN missed_last END,
        attempts = (moved ->> 'attempts')::bigint,
        next_try = (moved ->> 'next_try')::bigint, due = (moved ->> 'due')::bigint,
        leased_until = lease_time(now) + (moved ->> 'due')::bigint - now,
        news_from = (moved ->> 'news_from')::bigint,
        last_status = (moved ->> 'last_status')::bigint,
        last_error = moved ->> 'last_error', tried_to = (moved ->> 'tried_to')::bigint,
        lease_id = CASE WHEN (moved ->> 'release')::boolean AND NOT is_finished THEN 0
            ELSE lease_id END
        WHERE subscription_id = whose;
    RETURN CASE WHEN is_finished THEN 'unfinished' ELSE 'done' END;
END $$;

-- --- dead letters ---

CREATE OR REPLACE FUNCTION add_dead_letter(
    whose bigint, given_first bigint, given_last bigint, why text, now bigint
) RETURNS void LANGUAGE plpgsql AS $$
-- Add a dead letter, or extend the last one if nothing wanted lies between them. It is
-- not extended over trimmed records: they may have been wanted, and delivered.
BEGIN
    UPDATE dead_letters d SET first = least(first, given_first),
        last = greatest(last, given_last), reason = why, at = now
        WHERE id = (SELECT max(id) FROM dead_letters WHERE subscription_id = whose)
        AND (reason = 'trimmed') = (why = 'trimmed') AND first <= given_first
        AND (last + 1 >= given_first OR last >= (SELECT tail FROM log_head))
        AND (SELECT w.first FROM wanted_range(whose, d.last, given_first - 1, 0, 0) w)
            IS NULL;
    IF NOT FOUND THEN
        INSERT INTO dead_letters (subscription_id, first, last, reason, at)
            VALUES (whose, given_first, given_last, why, now);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION give_up(given jsonb, closed text[], now bigint)
RETURNS text LANGUAGE plpgsql AS $$
-- Make a dead letter of the undelivered records, and close the retry. `closed`: retries
-- that the same flush has closed; it may give up a retry twice. The dead letter
-- includes records that fan-out passed by while the retry was open, even above the last
-- one, but not those that the subscription got before its retry was set back.
DECLARE
    whose bigint := given ->> 'id';
    lease bigint := given ->> 'lease_id';
    at bigint := given ->> 'at';
    retrying retries;
    is_ours boolean;
    above record;
    rest record;
    from_there bigint;
    upto bigint;
BEGIN
    SELECT * INTO retrying FROM retries WHERE subscription_id = whose FOR UPDATE;
    IF FOUND THEN
        is_ours := lease = retrying.lease_id AND lease <> 0;
    ELSE
        is_ours := lease = 0 OR (whose || '/' || lease) = ANY(closed);
    END IF;
    IF NOT is_ours OR NOT EXISTS (SELECT 1 FROM subscriptions
        WHERE id = whose AND state = 'active') THEN
        RETURN 'lost';
    END IF;
    SELECT * INTO above FROM wanted_range(whose, (given ->> 'last')::bigint,
        last_passed(whose), retrying.skip_after, retrying.skip_to);
    upto := coalesce(above.last, (given ->> 'last')::bigint);
    from_there := greatest((given ->> 'first')::bigint,
        coalesce(retrying.position, 0) + 1);
    IF retrying.skip_after IS NOT DISTINCT FROM retrying.skip_to THEN
        IF from_there <= upto THEN
            PERFORM add_dead_letter(whose, from_there, upto, given ->> 'reason', at);
        END IF;
    ELSE
        IF from_there <= least(upto, retrying.skip_after) THEN
            PERFORM add_dead_letter(whose, from_there, least(upto, retrying.skip_after),
                given ->> 'reason', at);
        END IF;
        SELECT * INTO rest FROM wanted_range(whose,
            greatest(retrying.skip_to, from_there - 1), upto, 0, 0);
        IF rest.first IS NOT NULL THEN
            PERFORM add_dead_letter(whose, rest.first, rest.last, given ->> 'reason', at);
        END IF;
    END IF;
    PERFORM close_retry(whose, greatest(upto, coalesce(retrying.skip_to, 0)));
    IF NOT (given ->> 'was_untried')::boolean THEN
        IF are_events_wanted() THEN
            UPDATE subscriptions SET
                told_since = coalesce(told_since, condition_since, at)
                WHERE id = whose AND NOT exhausted;
            IF FOUND THEN
                PERFORM queue_event('subscription.given_up', at, s.id, given ->> 'reason',
                    CASE s.condition WHEN 'failing' THEN s.condition_since END, NULL,
                    (given ->> 'first')::bigint, (given ->> 'last')::bigint)
                FROM subscriptions s WHERE s.id = whose;
            END IF;
        END IF;
        UPDATE subscriptions SET exhausted = TRUE, failure = given ->> 'reason'
            WHERE id = whose;
    END IF;
    RETURN 'done';
END $$;

CREATE OR REPLACE FUNCTION is_in_chunk(wanted bigint) RETURNS boolean
LANGUAGE sql STABLE AS $$
SELECT EXISTS (SELECT 1 FROM subscriptions s JOIN chunks c ON c.feed_id = s.feed_id
    WHERE s.id = wanted AND s.id = ANY(c.members));
$$;

CREATE OR REPLACE FUNCTION open_range(wanted bigint, given bigint, upto bigint, now bigint)
RETURNS void LANGUAGE sql AS $$
-- Open a retry that sends the range (given, upto] again. What fan-out has delivered since
-- the range is skipped.
INSERT INTO retries (subscription_id, feed_id, position, attempts, next_try,
    failing_since, last_status, last_error, skip_after, skip_to, lease_id, due)
SELECT id, feed_id, given, 0, now, now, 0, '', upto,
    greatest(upto, last_passed(wanted)), 0, now FROM subscriptions WHERE id = wanted;
$$;

CREATE OR REPLACE FUNCTION send_again_from(wanted bigint, given bigint, now bigint)
RETURNS void LANGUAGE sql AS $$
-- Set an open retry back, never forward; nothing is skipped any more. What it had passed
-- is sent again, and so is what a retry that was set back before has not come to yet.
UPDATE retries SET position = least(position, given),
    skip_after = greatest(position, skip_to), skip_to = greatest(position, skip_to),
    attempts = 0, next_try = now, due = now, tried_to = NULL
    WHERE subscription_id = wanted;
$$;

CREATE OR REPLACE FUNCTION retry_dead_letter(dead bigint, now bigint)
RETURNS TABLE (outcome text, whose bigint) LANGUAGE plpgsql AS $$
-- Retry a dead letter, as far as the log still has it. Any outcome but "done" says why
-- not.
DECLARE
    letter dead_letters;
    subscription subscriptions;
    retrying retries;
    log log_head;
    start bigint;
    left_over record;
BEGIN
    PERFORM hold_audience();
    SELECT * INTO log FROM log_head;
    SELECT * INTO letter FROM dead_letters WHERE id = dead FOR UPDATE;
    SELECT * INTO subscription FROM subscriptions
        WHERE id = letter.subscription_id AND state = 'active';
    whose := subscription.id;
    outcome := CASE
        WHEN subscription.id IS NULL THEN 'missing'
        WHEN letter.last <= log.tail THEN 'trimmed'
        WHEN subscription.paused_at IS NOT NULL THEN 'paused'
        WHEN is_in_chunk(whose) THEN 'in flight' ELSE 'done' END;
    IF outcome <> 'done' THEN
        RETURN NEXT;
        RETURN;
    END IF;
    start := greatest(letter.first - 1, log.tail);
    SELECT * INTO retrying FROM retries WHERE subscription_id = whose FOR UPDATE;
    IF FOUND THEN
        SELECT * INTO left_over FROM wanted_range(whose, letter.last, retrying.position,
            0, 0);
        IF retrying.lease_id <> 0 OR retrying.skip_after < retrying.skip_to
            OR retrying.position < start OR left_over.first IS NOT NULL THEN
            outcome := 'catching up';
            RETURN NEXT;
            RETURN;
        END IF;
        PERFORM send_again_from(whose, start, now);
    ELSE
        PERFORM open_range(whose, start, letter.last, now);
    END IF;
    IF letter.first <= log.tail THEN
        UPDATE dead_letters SET last = log.tail WHERE id = dead;
    ELSE
        DELETE FROM dead_letters WHERE id = dead;
    END IF;
    PERFORM note_conditions(ARRAY[whose], now);
    RETURN NEXT;
END $$;

CREATE OR REPLACE FUNCTION replay(wanted bigint, after bigint, now bigint)
RETURNS text LANGUAGE plpgsql AS $$
-- Have the subscription catch up from a position, wherever its retry stands. Any
-- outcome but "done" says why not.
DECLARE
    subscription subscriptions;
    retrying retries;
    start bigint;
BEGIN
    PERFORM hold_audience();
    SELECT * INTO subscription FROM subscriptions WHERE id = wanted AND state = 'active';
    IF NOT FOUND THEN
        RETURN 'missing';
    END IF;
    IF subscription.paused_at IS NOT NULL THEN
        RETURN 'paused';
    END IF;
    SELECT * INTO retrying FROM retries WHERE subscription_id = wanted FOR UPDATE;
    IF retrying.lease_id <> 0 THEN
        RETURN 'catching up';
    END IF;
    IF is_in_chunk(wanted) THEN
        RETURN 'in flight';
    END IF;
    SELECT greatest(after, tail) INTO start FROM log_head;
    IF retrying.subscription_id IS NULL THEN
        PERFORM open_range(wanted, start, last_passed(wanted), now);
    ELSE
        PERFORM send_again_from(wanted, start, now);
    END IF;
    PERFORM note_conditions(ARRAY[wanted], now);
    RETURN 'done';
END $$;

CREATE OR REPLACE FUNCTION retry_early(wanted bigint, now bigint) RETURNS text
LANGUAGE plpgsql AS $$
-- Make a retry due now, ahead of its schedule. A leased one is being tried already.
DECLARE
    lease bigint;
BEGIN
    IF EXISTS (SELECT 1 FROM subscriptions
        WHERE id = wanted AND paused_at IS NOT NULL) THEN
        RETURN 'paused';
    END IF;
    UPDATE retries SET due = CASE lease_id WHEN 0 THEN least(due, now) ELSE due END
        WHERE subscription_id = wanted RETURNING lease_id INTO lease;
    RETURN CASE WHEN lease IS NULL THEN 'missing' WHEN lease = 0 THEN 'done'
        ELSE 'tried' END;
END $$;

CREATE OR REPLACE FUNCTION discard_retry(wanted bigint, now bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
-- Close the retry at fan-out's position. A try under way will find that it has lost its
-- lease.
BEGIN
    PERFORM hold_audience();
    IF NOT EXISTS (SELECT 1 FROM retries WHERE subscription_id = wanted) THEN
        RETURN FALSE;
    END IF;
    PERFORM close_retry(wanted, last_passed(wanted));
    PERFORM note_conditions(ARRAY[wanted], now);
    RETURN TRUE;
END $$;

-- --- outcomes ---

CREATE OR REPLACE FUNCTION keep_attempt(attempt jsonb) RETURNS void LANGUAGE plpgsql AS $$
-- Keep an attempt: of each subscription the last 2,000 failures and catch-ups, and the
-- details of the last five failures, which stay however many catch-ups follow. More of
-- the oldest are looked at than may have to stay, so that at least two go.
DECLARE
    whose bigint := attempt ->> 'id';
    counted bigint := coalesce((SELECT number FROM attempts WHERE subscription_id = whose
        ORDER BY id DESC LIMIT 1), 0) + 1;
BEGIN
    INSERT INTO attempts (subscription_id, position, at, status, milliseconds, error,
        host, details, reason, number)
    VALUES (whose, (attempt ->> 'position')::bigint, (attempt ->> 'at')::bigint,
        (attempt ->> 'status')::bigint, (attempt ->> 'milliseconds')::bigint,
        attempt ->> 'error', attempt ->> 'host', packed(attempt, 'details'),
        (attempt ->> 'reason')::smallint, counted);
    IF counted > 2000 THEN
        DELETE FROM attempts WHERE id IN (SELECT id FROM attempts
                WHERE subscription_id = whose ORDER BY id LIMIT 8)
            AND number <= counted - 2000 AND details IS NULL;
    END IF;
    IF attempt ->> 'details' IS NOT NULL THEN
        UPDATE attempts SET details = NULL WHERE id =
            (SELECT id FROM attempts WHERE subscription_id = whose
                AND details IS NOT NULL ORDER BY id DESC LIMIT 1 OFFSET 5);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION flush_deliveries(
    flush jsonb, holder bigint, OUT unfinished bigint[], OUT lost bigint[]
) LANGUAGE plpgsql AS $$
-- Apply what happened to deliveries. Every write is fenced: it changes nothing unless
-- the lease it names still holds.
DECLARE
    now bigint := flush ->> 'at';
    each jsonb;
    gone text[] := '{}';
    fates jsonb := '{}';
    closed text[] := '{}';
    fate text;
    changed bigint[];
BEGIN
    IF flush ? 'opened' OR flush ? 'moved' OR flush ? 'given_up' OR flush ? 'advanced'
    THEN
        PERFORM hold_audience();
    END IF;
    FOR each IN SELECT jsonb_array_elements(flush -> 'outcomes') LOOP
        IF NOT acknowledge((each ->> 'chunk')::bigint, (each ->> 'lease')::bigint,
            ARRAY(SELECT jsonb_array_elements_text(each -> 'indexes')::int),
            ARRAY(SELECT decode(o, 'base64')
                FROM jsonb_array_elements_text(each -> 'outcomes') o), now) THEN
            gone := gone || ((each ->> 'chunk') || '/' || (each ->> 'lease'));
        END IF;
    END LOOP;
    FOR each IN SELECT jsonb_array_elements(flush -> 'opened') LOOP
        IF each ->> 'chunk' IS NULL OR each ->> 'chunk' <> ALL(gone) THEN
            PERFORM open_retry(each, holder, now);
        END IF;
    END LOOP;
    FOR each IN SELECT jsonb_array_elements(flush -> 'moved') LOOP
        fate := move_retry(each, now);
        fates := fates || jsonb_build_object(each ->> 'id', fate);
    END LOOP;
    FOR each IN SELECT jsonb_array_elements(flush -> 'given_up') LOOP
        IF each ->> 'chunk' IS NULL OR each ->> 'chunk' <> ALL(gone) THEN
            fate := give_up(each, closed, now);
            fates := fates || jsonb_build_object(each ->> 'id', fate);
            IF fate = 'done' THEN
                closed := closed || ((each ->> 'id') || '/' || (each ->> 'lease_id'));
            END IF;
        END IF;
    END LOOP;
    FOR each IN SELECT jsonb_array_elements(flush -> 'ended') LOOP
        UPDATE subscriptions SET condition = 'gone'
            WHERE id = (each ->> 0)::bigint AND state IN ('pending', 'active');
        PERFORM end_subscriptions(ARRAY[(each ->> 0)::bigint], each ->> 1, 'ended', now);
    END LOOP;
    UPDATE subscriptions SET exhausted = FALSE WHERE exhausted AND id IN
        (SELECT jsonb_array_elements_text(flush -> 'recovered')::bigint);
    changed := ARRAY(SELECT DISTINCT c::bigint FROM (
        SELECT jsonb_array_elements_text(flush -> 'recovered') AS c
        UNION ALL SELECT jsonb_array_elements(flush -> 'opened') ->> 'id'
        UNION ALL SELECT jsonb_array_elements(flush -> 'moved') ->> 'id'
        UNION ALL SELECT jsonb_array_elements(flush -> 'given_up') ->> 'id') a
        ORDER BY 1);
    IF cardinality(changed) > 0 THEN
        PERFORM note_conditions(changed, now);
    END IF;
    UPDATE subscriptions s SET from_position = a.position
        FROM (SELECT (e ->> 0)::bigint AS id, max((e ->> 1)::bigint) AS position
            FROM jsonb_array_elements(flush -> 'advanced') e GROUP BY 1) a
        WHERE s.id = a.id AND s.from_position < a.position;
    INSERT INTO notified AS n SELECT (e ->> 0)::bigint, sum((e ->> 1)::bigint)::bigint
        FROM jsonb_array_elements(flush -> 'notified') e
        JOIN accounts c ON c.id = (e ->> 0)::bigint GROUP BY 1 ORDER BY 1
        ON CONFLICT (account_id)
            DO UPDATE SET requests = n.requests + excluded.requests;
    FOR each IN SELECT jsonb_array_elements(flush -> 'attempts') LOOP
        PERFORM keep_attempt(each);
    END LOOP;
    unfinished := ARRAY(SELECT f.key::bigint FROM jsonb_each_text(fates) f
        WHERE f.value = 'unfinished');
    lost := ARRAY(SELECT f.key::bigint FROM jsonb_each_text(fates) f
        WHERE f.value = 'lost');
END $$;

CREATE OR REPLACE FUNCTION trim_attempts(before bigint, most bigint, kept bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
-- Delete attempts by age, and failures and catch-ups also until so many are left: they are
-- counted only if there may be as many.
DECLARE
    failed bigint;
    crowded bigint;
    straight bigint;
BEGIN
    DELETE FROM attempts WHERE id IN
        (SELECT id FROM attempts WHERE at < before ORDER BY at LIMIT most);
    GET DIAGNOSTICS failed = ROW_COUNT;
    DELETE FROM attempts WHERE id IN (SELECT id FROM attempts WHERE id <=
            (SELECT id FROM attempts
                WHERE (SELECT max(id) - min(id) FROM attempts) >= kept
                ORDER BY id DESC LIMIT 1 OFFSET kept)
        ORDER BY id LIMIT most - failed);
    GET DIAGNOSTICS crowded = ROW_COUNT;
    DELETE FROM deliveries WHERE id IN
        (SELECT id FROM deliveries WHERE at < before ORDER BY at LIMIT most);
    GET DIAGNOSTICS straight = ROW_COUNT;
    RETURN failed + crowded + straight;
END $$;
