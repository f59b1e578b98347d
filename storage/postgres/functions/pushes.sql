-- Pushes of other people's hubs.

CREATE OR REPLACE FUNCTION count_of_hub(given text, given_what text) RETURNS void
LANGUAGE sql AS $$
-- Count for one hub, and for all hubs under "".
INSERT INTO push_hubs AS h SELECT DISTINCT n, given_what, 1
    FROM unnest(ARRAY[given, '']) n ORDER BY n
    ON CONFLICT (hub, what) DO UPDATE SET count = h.count + 1;
$$;

CREATE OR REPLACE FUNCTION forget_hub(given text) RETURNS void LANGUAGE sql AS $$
-- Delete the counts of a hub that no feed names any more: feeds may name any number of
-- hubs.
DELETE FROM push_hubs WHERE hub = given AND given <> ''
    AND NOT EXISTS (SELECT 1 FROM pushes WHERE hub = given);
$$;

CREATE OR REPLACE FUNCTION put_push(feed bigint, push jsonb, now bigint) RETURNS void
LANGUAGE plpgsql AS $$
-- Store a push, within the call that commits a fetch.
DECLARE
    former text := '';
    given text := push ->> 'hub';
    heeded bigint := push ->> 'heeded_until';
    hinted bigint := push ->> 'hinted_at';
    what text;
BEGIN
    SELECT hub INTO former FROM pushes WHERE feed_id = feed FOR UPDATE;
    IF NOT FOUND THEN
        former := '';
        INSERT INTO pushes (feed_id, way, hub, topic, marks, record, hinted_at, due)
        VALUES (feed, push ->> 'way', given, push ->> 'topic', push ->> 'marks',
            packed(push, 'record'), hinted, now);
    ELSE
        UPDATE pushes p SET
            failures = CASE p.hub WHEN given THEN p.failures ELSE 0 END,
            retry_at = CASE p.hub WHEN given THEN p.retry_at END,
            error = CASE p.hub WHEN given THEN p.error ELSE '' END,
            way = push ->> 'way', hub = given, topic = push ->> 'topic',
            marks = push ->> 'marks', record = packed(push, 'record'),
            hinted_at = CASE WHEN p.hinted_at <= heeded THEN NULL
                ELSE coalesce(p.hinted_at, CASE WHEN heeded IS NULL THEN hinted END) END,
            due = CASE WHEN (push ->> 'is_turned')::boolean THEN now ELSE p.due END
        WHERE p.feed_id = feed;
    END IF;
    IF former <> given THEN
        PERFORM forget_hub(former);
    END IF;
    FOR what IN SELECT jsonb_array_elements_text(push -> 'counted') LOOP
        PERFORM count_of_hub(given, what);
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION drop_callback(callback bigint, feed bigint) RETURNS void
LANGUAGE sql AS $$
DELETE FROM push_callbacks WHERE id = callback;
UPDATE pushes SET due = 0, until = (SELECT max(until) FROM push_callbacks
    WHERE feed_id = feed AND state = 'active') WHERE feed_id = feed;
$$;

CREATE OR REPLACE FUNCTION put_off_push(feed bigint, given_due bigint) RETURNS void
LANGUAGE sql AS $$
UPDATE pushes SET due = given_due WHERE feed_id = feed;
$$;

CREATE OR REPLACE FUNCTION ask_hub(
    feed bigint, given_way text, given_hub text, given_topic text, given_hash bytea,
    given_token text, given_secret text, now bigint, given_until bigint
) RETURNS void LANGUAGE sql AS $$
INSERT INTO push_callbacks (feed_id, way, hub, topic, token_hash, token, secret, state,
    asked_at, until)
VALUES (feed, given_way, given_hub, given_topic, given_hash, given_token, given_secret,
    'asked', now, given_until);
UPDATE pushes SET asked_at = now WHERE feed_id = feed;
SELECT count_of_hub(given_hub, 'requested');
$$;

CREATE OR REPLACE FUNCTION fail_push(
    callback bigint, feed bigint, given_hub text, what text, why text, given_retry bigint
) RETURNS void LANGUAGE sql AS $$
UPDATE pushes SET failures = failures + 1, error = why, retry_at = given_retry
    WHERE feed_id = feed;
SELECT drop_callback(callback, feed);
SELECT count_of_hub(given_hub, what);
$$;

CREATE OR REPLACE FUNCTION confirm_push(
    callback bigint, feed bigint, given_hub text, given_until bigint, was_asked boolean
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE push_callbacks SET state = 'active', until = given_until WHERE id = callback;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    UPDATE pushes SET failures = 0, error = '', retry_at = NULL, due = 0,
        until = given_until WHERE feed_id = feed;
    IF was_asked THEN
        PERFORM count_of_hub(given_hub, 'confirmed');
    END IF;
END $$;

CREATE OR REPLACE FUNCTION leave_hub(callback bigint, feed bigint, given_until bigint)
RETURNS void LANGUAGE sql AS $$
UPDATE push_callbacks SET state = 'ending', until = least(until, given_until)
    WHERE id = callback;
UPDATE pushes SET until = (SELECT max(until) FROM push_callbacks
    WHERE feed_id = feed AND state = 'active') WHERE feed_id = feed;
$$;

CREATE OR REPLACE FUNCTION forget_push(feed bigint) RETURNS void LANGUAGE plpgsql AS $$
-- Delete a push, and the counts of its hub if no feed names that any more.
DECLARE
    former text;
BEGIN
    SELECT hub INTO former FROM pushes WHERE feed_id = feed;
    DELETE FROM pushes p WHERE feed_id = feed AND (way = '' OR NOT EXISTS
        (SELECT 1 FROM feeds WHERE id = p.feed_id AND state <> 'removed'));
    PERFORM forget_hub(coalesce(former, ''));
END $$;

CREATE OR REPLACE FUNCTION hint_push(feed bigint, given_hub text, at bigint) RETURNS void
LANGUAGE sql AS $$
UPDATE pushes SET hinted_at = greatest(coalesce(hinted_at, 0), at) WHERE feed_id = feed;
SELECT count_of_hub(given_hub, 'delivered');
$$;
