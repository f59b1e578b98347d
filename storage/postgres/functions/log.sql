-- The log: records, and who gets them.

CREATE OR REPLACE FUNCTION packed(value jsonb, name text) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$
SELECT decode(value ->> name, 'base64');
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
