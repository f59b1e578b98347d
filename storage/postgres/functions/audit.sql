CREATE OR REPLACE FUNCTION trim_audit(before bigint, kept bigint, most bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    trimmed bigint;
    more bigint;
    rank boolean;
BEGIN
    DELETE FROM audit WHERE id IN
        (SELECT id FROM audit WHERE at < before ORDER BY at LIMIT most);
    GET DIAGNOSTICS trimmed = ROW_COUNT;
    FOREACH rank IN ARRAY ARRAY[FALSE, TRUE] LOOP
        DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE is_admin = rank
            AND id <= (SELECT id FROM audit WHERE is_admin = rank
                ORDER BY id DESC LIMIT 1 OFFSET kept)
            ORDER BY id LIMIT most - trimmed);
        GET DIAGNOSTICS more = ROW_COUNT;
        trimmed := trimmed + more;
    END LOOP;
    RETURN trimmed;
END $$;
