-- Requests to the open hub.

CREATE OR REPLACE FUNCTION add_verification(given jsonb) RETURNS boolean
LANGUAGE plpgsql AS $$
-- Store a request as pending, due now. Returns FALSE, and stores nothing, if too many
-- are pending. They are counted in an index, no further than needed; requests of one
-- host, and of one asker, are stored one after the other.
DECLARE
    now bigint := given ->> 'now';
    key bytea := packed(given, 'key_hash');
    given_mode text := given ->> 'mode';
    given_host text := given ->> 'host';
    given_asker text := given ->> 'asker';
    is_renewed boolean;
BEGIN
    PERFORM pg_advisory_xact_lock(1178681930, hashtext(current_schema()));
    UPDATE verifications SET due = NULL, state = 'replaced', secret = '', asker = '',
        kept_until = now + 86400000
        WHERE key_hash = key AND mode = given_mode AND due IS NOT NULL;
    is_renewed := FOUND;
    -- End a request whose callback did not answer, if the opposite is requested now.
    UPDATE verifications SET due = NULL, state = 'replaced', secret = '', asker = '',
        kept_until = now + 86400000
        WHERE key_hash = key AND mode <> given_mode AND attempts > 0 AND due > now;
    IF NOT is_renewed AND (
        has_as_many((given ->> 'most')::bigint)
        OR has_as_many_of_host(given_host, (given ->> 'most_of_host')::bigint)
        OR given_asker <> '' AND given ->> 'most_of_asker' IS NOT NULL
            AND has_as_many_of_asker(given_asker, (given ->> 'most_of_asker')::bigint))
    THEN
        RETURN FALSE;
    END IF;
    INSERT INTO verifications (account_id, mode, topic, callback, host, key_hash,
        token_hash, lease_seconds, secret, algorithm, format, verify_token,
        account_request, state, created_at, attempts, due, status, excerpt, reason, asker)
    VALUES ((given ->> 'account')::bigint, given_mode, given ->> 'topic',
        given ->> 'callback', given_host, key, packed(given, 'token_hash'),
        (given ->> 'lease_seconds')::bigint, given ->> 'secret', given ->> 'algorithm',
        given ->> 'format', given ->> 'verify_token', given ->> 'account_request',
        'pending', now, 0, now, 0, '', '', given_asker);
    RETURN TRUE;
END $$;

CREATE OR REPLACE FUNCTION has_as_many(most bigint) RETURNS boolean
LANGUAGE sql STABLE AS $$
SELECT count(*) >= most FROM
    (SELECT 1 FROM verifications WHERE due IS NOT NULL LIMIT most) v;
$$;

CREATE OR REPLACE FUNCTION has_as_many_of_host(given text, most bigint) RETURNS boolean
LANGUAGE sql STABLE AS $$
SELECT count(*) >= most FROM
    (SELECT 1 FROM verifications WHERE host = given AND due IS NOT NULL LIMIT most) v;
$$;

CREATE OR REPLACE FUNCTION has_as_many_of_asker(given text, most bigint) RETURNS boolean
LANGUAGE sql STABLE AS $$
SELECT count(*) >= most FROM (SELECT 1 FROM verifications
    WHERE asker = given AND asker <> '' AND due IS NOT NULL LIMIT most) v;
$$;

CREATE OR REPLACE FUNCTION add_verifications(given jsonb) RETURNS boolean[]
LANGUAGE sql AS $$
SELECT array_agg(add_verification(g) ORDER BY place)
FROM jsonb_array_elements(given) WITH ORDINALITY a (g, place);
$$;

CREATE OR REPLACE FUNCTION confirm_verification(
    wanted bigint, now bigint, given_status bigint, given_excerpt text,
    given_reason text, given_until bigint
) RETURNS void LANGUAGE sql AS $$
-- A request that was replaced while its callback was asked is confirmed all the same.
UPDATE verifications SET attempts = attempts + 1, due = NULL, tried_at = now,
    status = given_status, excerpt = given_excerpt, reason = given_reason,
    state = 'verified', secret = '', asker = '', kept_until = given_until
    WHERE id = wanted AND state IN ('pending', 'replaced');
DELETE FROM claims WHERE kind = 'verifications' AND item = wanted;
$$;

CREATE OR REPLACE FUNCTION subscribe_confirmed(
    account bigint, topic text, normal_topic text, of_feed bigint, given_hash bytea,
    given_callback text, given_secret text, given_secret_hash bytea,
    given_algorithm text, given_format text, given_updates text, given_wants bigint,
    is_batch boolean, given_lease bigint, given_former bigint, is_silent boolean,
    now bigint, wanted bigint, given_status bigint, given_excerpt text,
    given_reason text, given_until bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
-- Subscribe as confirmed. Returns FALSE, and changes nothing, if the feed is gone or
-- removed.
BEGIN
    IF subscribe_one(account, topic, normal_topic, of_feed, given_hash, given_callback,
        given_secret, given_secret_hash, given_algorithm, given_format, given_updates,
        given_wants, is_batch, given_lease, given_former, is_silent, now, TRUE) IS NULL
    THEN
        RETURN FALSE;
    END IF;
    PERFORM confirm_verification(wanted, now, given_status, given_excerpt, given_reason,
        given_until);
    RETURN TRUE;
END $$;

CREATE OR REPLACE FUNCTION unsubscribe_confirmed(
    subscription bigint, why text, now bigint, wanted bigint, given_status bigint,
    given_excerpt text, given_reason text, given_until bigint
) RETURNS void LANGUAGE sql AS $$
SELECT end_subscriptions(ARRAY[subscription], why, 'ended', now);
SELECT confirm_verification(wanted, now, given_status, given_excerpt, given_reason,
    given_until);
$$;
