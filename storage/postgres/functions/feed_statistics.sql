CREATE OR REPLACE FUNCTION save_statistics(given jsonb, lease bigint, holder bigint)
RETURNS bigint[] LANGUAGE plpgsql AS $$
-- Save statistics, of feeds that are held under this lease; returns which they are. Those
-- of feeds that were purged meanwhile are skipped.
DECLARE
    held bigint[] := end_claims('statistics',
        ARRAY(SELECT (g ->> 'feed_id')::bigint FROM jsonb_array_elements(given) g),
        lease, holder);
BEGIN
    given := (SELECT coalesce(jsonb_agg(g), '[]') FROM jsonb_array_elements(given) g
        WHERE (g ->> 'feed_id')::bigint = ANY(held));
    UPDATE feed_statistics s SET due = (g ->> 'due')::bigint,
        maintained_at = (g ->> 'at')::bigint,
        popularity = (g ->> 'popularity')::double precision,
        porn_rank = (g ->> 'porn_rank')::double precision,
        is_stale = (g ->> 'is_stale')::boolean, site = g ->> 'site'
        FROM jsonb_array_elements(given) g WHERE s.feed_id = (g ->> 'feed_id')::bigint;
    DELETE FROM feed_links l USING jsonb_array_elements(given) g
        WHERE l.feed_id = (g ->> 'feed_id')::bigint AND NOT g -> 'places' ? l.place;
    INSERT INTO feed_links SELECT p, s.feed_id FROM jsonb_array_elements(given) g
        JOIN feed_statistics s ON s.feed_id = (g ->> 'feed_id')::bigint,
        jsonb_array_elements_text(g -> 'places') p ORDER BY p, s.feed_id
        ON CONFLICT DO NOTHING;
    RETURN held;
END $$;
