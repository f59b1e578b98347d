CREATE OR REPLACE FUNCTION add_plan(
    owner bigint, given_action text, given_kind text, given_wanted text,
    given_category text, given_head bigint, given_total bigint, given_sample text,
    now bigint, until bigint, most_open bigint, kept bigint
) RETURNS bigint LANGUAGE plpgsql AS $$
-- Add a plan; returns its id, NULL if the account has too many open plans.
DECLARE
    added bigint;
BEGIN
    PERFORM 1 FROM accounts WHERE id = owner FOR NO KEY UPDATE;
    IF most_open <= (SELECT count(*) FROM plans WHERE account_id = owner
        AND (state = 'running' OR state = 'planned' AND expires_at > now)) THEN
        RETURN NULL;
    END IF;
    DELETE FROM plans WHERE id IN (SELECT id FROM plans WHERE account_id = owner
        AND NOT (state = 'running' OR state = 'planned' AND expires_at > now)
        ORDER BY id DESC OFFSET kept);
    INSERT INTO plans (account_id, action, kind, wanted, category, head, total, sample,
        state, created_at, expires_at)
    VALUES (owner, given_action, given_kind, given_wanted, given_category, given_head,
        given_total, given_sample, 'planned', now, until)
    RETURNING id INTO added;
    RETURN added;
END $$;
