-- The hub as a whole, and what all other functions use.

CREATE OR REPLACE FUNCTION hold_audience() RETURNS void LANGUAGE plpgsql AS $$
-- Hold AUDIENCE: until the end of the transaction nobody else decides who gets a
-- record, or appends one. It is locked after feeds, and before everything else.
BEGIN
    PERFORM pg_advisory_xact_lock(1178681927, hashtext(current_schema()));
END $$;

CREATE OR REPLACE FUNCTION make_partition(number bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
-- Create the partition of the log with that number, for a million records, unless it is
-- there. A table that is created first and then attached blocks nobody; one created as a
-- partition would.
DECLARE
    size CONSTANT bigint := 1000000;
BEGIN
    IF to_regclass('records_' || number) IS NOT NULL THEN
        RETURN;
    END IF;
    LOCK TABLE records IN SHARE UPDATE EXCLUSIVE MODE;
    IF to_regclass('records_' || number) IS NOT NULL THEN
        RETURN;
    END IF;
    EXECUTE format('CREATE TABLE records_%s (LIKE records INCLUDING ALL)', number);
    EXECUTE format(
        'ALTER TABLE records ATTACH PARTITION records_%s FOR VALUES FROM (%s) TO (%s)',
        number, number * size, (number + 1) * size);
END $$;

CREATE OR REPLACE FUNCTION ensure_partitions() RETURNS void LANGUAGE sql AS $$
-- For at least the next million records.
SELECT make_partition(head / 1000000), make_partition(head / 1000000 + 1) FROM log_head;
$$;

CREATE OR REPLACE FUNCTION compact_counts() RETURNS void LANGUAGE sql AS $$
-- Replace stored changes of counts by their sums.
WITH changes AS (DELETE FROM feed_counts RETURNING *)
INSERT INTO feed_counts SELECT health, category, sum(total) FROM changes
    GROUP BY health, category HAVING sum(total) <> 0;
WITH changes AS (DELETE FROM subscription_counts RETURNING *)
INSERT INTO subscription_counts SELECT account_id, health, sum(total) FROM changes
    GROUP BY account_id, health HAVING sum(total) <> 0;
WITH changes AS (DELETE FROM page_withdrawals RETURNING *)
INSERT INTO page_withdrawals SELECT section, sum(total) FROM changes GROUP BY section;
$$;

CREATE OR REPLACE FUNCTION note_disk(now bigint, used bigint, free bigint, kept bigint)
RETURNS void LANGUAGE sql AS $$
DELETE FROM disk_samples WHERE at NOT BETWEEN kept AND now;
INSERT INTO disk_samples VALUES (now, used, free);
$$;

CREATE OR REPLACE FUNCTION add_sample(now bigint, given bytea, kept bigint) RETURNS void
LANGUAGE sql AS $$
DELETE FROM series_samples WHERE at < kept OR at >= now;
INSERT INTO series_samples VALUES (now, given);
$$;

CREATE OR REPLACE FUNCTION add_fine_sample(now bigint, given bytea, kept bigint)
RETURNS void LANGUAGE sql AS $$
DELETE FROM fine_samples WHERE at < kept OR at >= now;
INSERT INTO fine_samples VALUES (now, given);
$$;

CREATE OR REPLACE FUNCTION former_write(of_node bigint, lane text)
RETURNS lanes LANGUAGE plpgsql AS $$
-- A node's last write in a lane, locked until the next one ends. A write of the same
-- number was stored already, and is answered as it was then: so a call whose answer was
-- lost is repeated. If the first call is still at work, this waits for it.
DECLARE
    found lanes;
BEGIN
    INSERT INTO lanes AS l (node, name, last_number, used_at)
        VALUES (of_node, lane, 0, now())
        ON CONFLICT (node, name) DO UPDATE SET used_at = now()
        RETURNING l.* INTO found;
    RETURN found;
END $$;

CREATE OR REPLACE FUNCTION flush_in_lane(
    of_node bigint, number bigint, of_incarnation bigint, given jsonb
) RETURNS jsonb LANGUAGE plpgsql AS $$
-- Flush deliveries in a node's lane. 0: the flush has no number, and no place there.
DECLARE
    known lanes;
    told jsonb;
BEGIN
    IF number <> 0 THEN
        known := former_write(of_node, 'deliveries');
        IF known.last_number = number THEN
            RETURN known.answer;
        END IF;
    END IF;
    PERFORM require_term(of_incarnation);
    SELECT jsonb_build_array(f.unfinished, f.lost)
        INTO told FROM flush_deliveries(given, of_incarnation) f;
    UPDATE lanes SET last_number = number, answer = told
        WHERE node = of_node AND name = 'deliveries' AND number <> 0;
    RETURN told;
END $$;

CREATE OR REPLACE FUNCTION correct_feeds(
    ids bigint[], outcomes bytea[], fetched bigint[], fresh bigint[], cold bytea[],
    times bigint[]
) RETURNS void LANGUAGE sql AS $$
-- Correct when feeds are fetched next, and the times in their polling states; no
-- outcome: unchanged.
UPDATE feeds f SET polling = g.cold
    FROM unnest(ids, cold) g (id, cold) WHERE f.id = g.id AND g.cold IS NOT NULL;
UPDATE feed_outcomes o SET polling = g.outcome
    FROM unnest(ids, outcomes) g (id, outcome)
    WHERE o.feed_id = g.id AND g.outcome IS NOT NULL;
UPDATE feed_hot h SET next_fetch = g.at,
    version = h.version + (g.outcome IS NOT NULL)::int,
    last_fetch = CASE WHEN g.outcome IS NULL THEN h.last_fetch ELSE g.fetched END,
    fresh_for = CASE WHEN g.outcome IS NULL THEN h.fresh_for ELSE g.fresh END
    FROM unnest(ids, outcomes, fetched, fresh, times) g (id, outcome, fetched, fresh, at)
    WHERE h.feed_id = g.id;
UPDATE schedule s SET next_fetch = g.at
    FROM unnest(ids, times) g (id, at) WHERE s.feed_id = g.id;
$$;

CREATE OR REPLACE FUNCTION hold_times(
    statements text[], now bigint, back bigint, seen bigint
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    statement text;
BEGIN
    FOREACH statement IN ARRAY statements LOOP
        EXECUTE statement USING now, back;
    END LOOP;
    UPDATE hub SET seen_at = seen;
END $$;
