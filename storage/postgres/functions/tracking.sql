-- Track queries.

CREATE OR REPLACE FUNCTION own_query(hash bytea, given_url text, owner bigint)
RETURNS bigint LANGUAGE sql STABLE AS $$
SELECT f.id FROM feeds f JOIN track_queries q ON q.feed_id = f.id
WHERE f.resource_hash = hash AND f.url = given_url AND q.account_id = owner
ORDER BY f.id LIMIT 1;
$$;

CREATE OR REPLACE FUNCTION add_query(
    hash bytea, given_url text, given_query text, owner bigint, now bigint
) RETURNS TABLE (feed stored_feeds, version bigint) LANGUAGE plpgsql AS $$
-- Add a query; returns the version of the queries that it began, 0 if it was there
-- already. A query that belongs to nobody becomes the asking account's, unless others
-- subscribe to it.
DECLARE
    known bigint;
BEGIN
    PERFORM hold_resource(hash);
    known := own_query(hash, given_url, owner);
    IF known IS NULL THEN
        UPDATE track_queries SET account_id = owner
            WHERE account_id = 0 AND feed_id IN (
                SELECT f.id FROM feeds f WHERE f.resource_hash = hash
                AND f.url = given_url AND NOT EXISTS (SELECT 1 FROM subscriptions s
                    WHERE s.feed_id = f.id AND s.account_id <> owner
                    AND s.state IN ('pending', 'active', 'ending')));
        IF FOUND THEN
            known := own_query(hash, given_url, owner);
        END IF;
    END IF;
    version := 0;
    IF known IS NULL THEN
        known := insert_feed(given_url, 'track', TRUE, '', '', '', '', hash, '', now);
        INSERT INTO track_queries VALUES (known, given_query, now, owner);
        version := 1;
    ELSE
        UPDATE track_queries SET wanted_at = now WHERE feed_id = known;
        PERFORM 1 FROM feeds WHERE id = known AND state <> 'track' FOR NO KEY UPDATE;
        IF FOUND THEN
            UPDATE feeds SET state = 'track', removed_at = NULL WHERE id = known;
            version := 1;
        END IF;
    END IF;
    IF version > 0 THEN
        PERFORM hold_audience();
        UPDATE log_head h SET queries = h.queries + 1 RETURNING h.queries INTO version;
        PERFORM note_control('came', ARRAY[known], version, given_query);
    END IF;
    RETURN QUERY SELECT v, add_query.version FROM stored_feeds v WHERE v.id = known;
END $$;

CREATE OR REPLACE FUNCTION retire_queries(
    since bigint, listened bigint[], now bigint, most bigint
) RETURNS bigint[] LANGUAGE plpgsql AS $$
-- Remove queries that nobody has wanted since then. A query is wanted while it has
-- subscriptions, and when it was just asked for or is listened to.
DECLARE
    ids bigint[];
BEGIN
    UPDATE track_queries SET wanted_at = now WHERE feed_id = ANY(listened);
    PERFORM hold_audience();
    ids := ARRAY(SELECT f.id FROM feeds f JOIN track_queries q ON q.feed_id = f.id
        LEFT JOIN feed_audience a ON a.feed_id = f.id
        WHERE f.state = 'track' AND coalesce(a.subscribers, 0) = 0
        AND q.wanted_at < since AND NOT EXISTS (SELECT 1 FROM subscriptions s
            WHERE s.feed_id = f.id
            AND (s.state IN ('pending', 'active') OR s.ended_at >= since))
        ORDER BY f.id LIMIT most);
    UPDATE feeds SET state = 'removed', removed_at = now WHERE id = ANY(ids);
    PERFORM note_control('went', ids, 0, '');
    RETURN ids;
END $$;
