-- The control log: what one node decides and all have to heed.

CREATE OR REPLACE FUNCTION note_control(
    what text, of_ids bigint[], given_number bigint, given_query text
) RETURNS void LANGUAGE plpgsql AS $$
-- Note an event, unless its node is alone. Whoever notes one lets others wait for its
-- commit, so that who has read an event has read all before it. The last 10,000 are
-- kept: more than come about while a node may be silent.
DECLARE
    noted bigint;
BEGIN
    IF of_ids = '{}' OR NOT EXISTS (SELECT 1 FROM nodes WHERE NOT is_alone) THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(1178681928, hashtext(current_schema()));
    INSERT INTO control (kind, ids, number, query)
        VALUES (what, of_ids, given_number, given_query) RETURNING id INTO noted;
    DELETE FROM control WHERE id <= noted - 10000;
END $$;
