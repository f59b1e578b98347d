-- Who does what is due. Claims are locked before all else, in the order of their items.

CREATE OR REPLACE FUNCTION due_verifications(now bigint, claiming bigint[])
RETURNS SETOF verifications LANGUAGE sql STABLE AS $$
-- Of each key the oldest that is pending, if it is due, and none is claimed but by who is
-- claiming these now.
SELECT v.* FROM verifications v
WHERE v.due <= now
    AND NOT EXISTS (SELECT 1 FROM verifications earlier
        WHERE earlier.key_hash = v.key_hash AND earlier.id < v.id
            AND earlier.due IS NOT NULL)
    AND v.key_hash NOT IN (SELECT o.key_hash
        FROM claims c JOIN verifications o ON o.id = c.item
        WHERE c.kind = 'verifications' AND c.until > lease_time(now)
            AND c.item <> ALL(claiming));
$$;

CREATE OR REPLACE FUNCTION work_due(of_kind text, ids bigint[], now bigint)
RETURNS bigint[] LANGUAGE plpgsql STABLE AS $$
-- Which of these are still due.
BEGIN
    RETURN CASE of_kind
        WHEN 'verifications' THEN ARRAY(SELECT id FROM due_verifications(now, ids)
            WHERE id = ANY(ids))
        WHEN 'digests' THEN ARRAY(SELECT d.subscription_id FROM digests d
            JOIN subscriptions s ON s.id = d.subscription_id
            WHERE d.subscription_id = ANY(ids) AND d.due <= now
                AND s.paused_at IS NULL)
        WHEN 'denials' THEN ARRAY(SELECT id FROM subscriptions
            WHERE id = ANY(ids) AND state = 'ending')
        WHEN 'statistics' THEN ARRAY(SELECT feed_id FROM feed_statistics
            WHERE feed_id = ANY(ids) AND due <= now)
        WHEN 'pushes' THEN ARRAY(SELECT feed_id FROM pushes
            WHERE feed_id = ANY(ids) AND due <= now)
    END;
END $$;

CREATE OR REPLACE FUNCTION claim_work(
    of_kind text, ids bigint[], lease bigint, holder bigint, lasting bigint, now bigint
) RETURNS bigint[] LANGUAGE plpgsql AS $$
-- Claim for so many milliseconds what is still due and nobody holds. That it is due is
-- found out after it is claimed: whoever held it until then has stored what came of it.
-- Verifications are claimed by one after the other, for one is not claimed while another
-- one of its key is. Who held what was over an hour ago does not come back to it.
DECLARE
    lease_now bigint := lease_time(now);
    claimed bigint[];
    still_due bigint[];
BEGIN
    PERFORM require_term(holder);
    IF of_kind = 'verifications' THEN
        PERFORM pg_advisory_xact_lock(1178681932, hashtext(current_schema()));
    END IF;
    DELETE FROM claims WHERE kind = of_kind AND item IN (
        SELECT item FROM claims WHERE kind = of_kind AND until <= lease_now - 3600000
        ORDER BY item FOR UPDATE SKIP LOCKED);
    WITH c AS (
        INSERT INTO claims AS c (kind, item, lease_id, incarnation, until)
        SELECT of_kind, i, lease, holder, lease_now + lasting FROM unnest(ids) i
            ORDER BY i
        ON CONFLICT (kind, item) DO UPDATE SET lease_id = excluded.lease_id,
            incarnation = excluded.incarnation, until = excluded.until
            WHERE c.until <= lease_now
        RETURNING item
    ) SELECT coalesce(array_agg(item), '{}') INTO claimed FROM c;
    still_due := work_due(of_kind, claimed, now);
    DELETE FROM claims WHERE kind = of_kind AND lease_id = lease
        AND item = ANY(claimed) AND item <> ALL(still_due);
    RETURN still_due;
END $$;

CREATE OR REPLACE FUNCTION renew_claims(
    of_kind text, ids bigint[], lease bigint, holder bigint, lasting bigint, now bigint
) RETURNS bigint[] LANGUAGE plpgsql AS $$
-- Extend this lease where it is not over, to so many milliseconds from now.
DECLARE
    lease_now bigint := lease_time(now);
    renewed bigint[];
BEGIN
    PERFORM require_term(holder);
    PERFORM 1 FROM claims WHERE kind = of_kind AND item = ANY(ids) AND lease_id = lease
        ORDER BY item FOR UPDATE;
    WITH c AS (
        UPDATE claims SET until = lease_now + lasting
        WHERE kind = of_kind AND item = ANY(ids) AND lease_id = lease
            AND until > lease_now
        RETURNING item
    ) SELECT coalesce(array_agg(item), '{}') INTO renewed FROM c;
    RETURN renewed;
END $$;

CREATE OR REPLACE FUNCTION holds_claim(
    of_kind text, of_item bigint, lease bigint, holder bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
-- Whether it is held, until the end of the transaction. NULL: no lease is wanted.
BEGIN
    PERFORM require_term(holder);
    IF lease IS NULL THEN
        RETURN TRUE;
    END IF;
    PERFORM 1 FROM claims WHERE kind = of_kind AND item = of_item AND lease_id = lease
        FOR UPDATE;
    RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION end_claims(
    of_kind text, ids bigint[], lease bigint, holder bigint
) RETURNS bigint[] LANGUAGE plpgsql AS $$
-- End those claims that are held under this lease; returns which they are. A renewal of
-- the same may be under way.
DECLARE
    ended bigint[];
BEGIN
    PERFORM require_term(holder);
    PERFORM 1 FROM claims WHERE kind = of_kind AND item = ANY(ids) AND lease_id = lease
        ORDER BY item FOR UPDATE;
    WITH c AS (
        DELETE FROM claims WHERE kind = of_kind AND item = ANY(ids) AND lease_id = lease
        RETURNING item
    ) SELECT coalesce(array_agg(item), '{}') INTO ended FROM c;
    RETURN ended;
END $$;
