-- Subscriptions: begun, changed, paused, ended.

CREATE OR REPLACE FUNCTION utc(milliseconds bigint) RETURNS text LANGUAGE sql STABLE AS $$
-- A time as text for JSON.
SELECT to_char(to_timestamp(milliseconds / 1000) AT TIME ZONE 'UTC',
    'YYYY-MM-DD"T"HH24:MI:SS') || '.' || lpad((milliseconds % 1000)::text, 3, '0') || 'Z';
$$;

CREATE OR REPLACE FUNCTION are_events_wanted() RETURNS boolean LANGUAGE sql STABLE AS $$
-- Whether anybody subscribes to operational events; if not, none is queued.
SELECT EXISTS (SELECT 1 FROM feeds f JOIN feed_audience a ON a.feed_id = f.id
    WHERE f.state = 'events' AND a.subscribers > 0);
$$;

CREATE OR REPLACE FUNCTION queue_event(
    kind text, at bigint, given_id bigint, reason text, since bigint, code bigint,
    first bigint DEFAULT NULL, last bigint DEFAULT NULL
) RETURNS void LANGUAGE sql AS $$
-- Queue an event of an active subscription to anything but events; for any other none.
INSERT INTO event_queue (event, is_of_hub)
SELECT json_strip_nulls(json_build_object('type', kind, 'at', utc(at), 'subject', s.id,
    'url', t.url, 'is_private', f.private, 'callback', s.callback, 'since', utc(since),
    'reason', reason, 'code', code, 'first', first, 'last', last))::text, FALSE
FROM subscriptions s JOIN topics t ON t.id = s.topic_id
JOIN feeds f ON f.id = s.feed_id AND f.state <> 'events'
WHERE s.id = given_id AND s.state = 'active';
$$;

CREATE OR REPLACE FUNCTION queue_endings(ids bigint[], reason text, at bigint)
RETURNS void LANGUAGE plpgsql AS $$
-- Queue events for those of these subscriptions that are active; called before they
-- end.
BEGIN
    IF are_events_wanted() THEN
        PERFORM queue_event('subscription.ended', at, s.id, reason,
            CASE s.condition WHEN 'failing' THEN s.condition_since END,
            CASE s.condition WHEN 'failing' THEN g.last_status END)
        FROM (SELECT * FROM subscriptions WHERE id = ANY(ids) ORDER BY id) s
        LEFT JOIN retries g ON g.subscription_id = s.id;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION queue_turns(ids bigint[], at bigint) RETURNS void
LANGUAGE plpgsql AS $$
-- Queue events after the conditions of these subscriptions were stored.
DECLARE
    is_wanted boolean := are_events_wanted();
    each record;
BEGIN
    FOR each IN SELECT s.id, s.told_since, g.last_status FROM subscriptions s
        LEFT JOIN retries g ON g.subscription_id = s.id
        WHERE s.id = ANY(ids) AND s.told_since IS NOT NULL AND s.state = 'active'
        AND s.condition <> 'failing' ORDER BY s.id
    LOOP
        UPDATE subscriptions SET told_since = NULL WHERE id = each.id;
        IF is_wanted THEN
            PERFORM queue_event('subscription.recovered', at, each.id, '',
                each.told_since, NULL);
        END IF;
    END LOOP;
    IF NOT is_wanted THEN
        RETURN;
    END IF;
    FOR each IN SELECT s.id, s.failure, s.condition_since, g.last_status
        FROM subscriptions s JOIN retries g ON g.subscription_id = s.id
        WHERE s.id = ANY(ids) AND s.told_since IS NULL AND s.state = 'active'
        AND s.condition = 'failing' AND g.attempts >= 2 ORDER BY s.id
    LOOP
        PERFORM queue_event('subscription.failing', at, each.id, each.failure,
            each.condition_since, each.last_status);
        UPDATE subscriptions SET told_since = coalesce(condition_since, at)
            WHERE id = each.id;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION note_conditions(ids bigint[], at bigint) RETURNS void
LANGUAGE plpgsql AS $$
-- Store whether subscriptions fail, are behind or are well, and since when. A
-- subscription stays `exhausted` until a 2xx, and keeps the reason why its last record
-- was given up. One that is well stays so while it is sent something again because
-- somebody asked (`skip_to`), until that fails.
BEGIN
    UPDATE subscriptions s SET
        condition_since =
            CASE s.condition WHEN n.condition THEN s.condition_since ELSE n.since END,
        condition = n.condition, failure = n.failure
    FROM (
        SELECT b.id,
            CASE WHEN b.exhausted OR g.attempts > 0 THEN 'failing'
                WHEN g.subscription_id IS NULL THEN 'ok'
                WHEN g.skip_to IS NOT NULL AND b.condition = 'ok' THEN 'ok'
                ELSE 'slow' END AS condition,
            coalesce(g.failing_since, at) AS since,
            CASE WHEN g.attempts > 0 OR g.attempts = 0 AND NOT b.exhausted
                THEN g.last_error WHEN b.exhausted THEN b.failure ELSE '' END AS failure
        FROM subscriptions b LEFT JOIN retries g ON g.subscription_id = b.id
        WHERE b.id = ANY(ids) AND b.state = 'active'
    ) n WHERE s.id = n.id AND (s.condition, s.failure) <> (n.condition, n.failure);
    PERFORM queue_turns(ids, at);
END $$;

-- --- ending ---

CREATE OR REPLACE FUNCTION end_subscriptions(
    ids bigint[], reason text, given_state text, now bigint
) RETURNS void LANGUAGE plpgsql AS $$
-- End those that have not ended yet, and delete their retries.
BEGIN
    PERFORM queue_endings(ids, reason, now);
    UPDATE subscriptions SET state = given_state, ended_reason = reason, ended_at = now,
        paused_at = NULL WHERE id = ANY(ids) AND state IN ('pending', 'active');
    DELETE FROM retries WHERE subscription_id = ANY(ids);
    PERFORM note_control('ended', ids, (SELECT head FROM log_head), '');
END $$;

CREATE OR REPLACE FUNCTION end_subscription(
    wanted bigint, reason text, given_state text, now bigint
) RETURNS SETOF stored_subscriptions LANGUAGE plpgsql AS $$
BEGIN
    PERFORM end_subscriptions(ARRAY[wanted], reason, given_state, now);
    RETURN QUERY SELECT * FROM stored_subscriptions WHERE id = wanted;
END $$;

CREATE OR REPLACE FUNCTION end_of_feed(
    of_feed bigint, reason text, now bigint, most bigint, whose text
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    ids bigint[];
BEGIN
    ids := ARRAY(SELECT id FROM subscriptions WHERE feed_id = of_feed
        AND state = 'active'
        AND (whose = 'all' OR whose = 'strangers' AND account_id = 1
            OR whose = 'others' AND account_id <> 2)
        ORDER BY id LIMIT most);
    PERFORM end_subscriptions(ids, reason, 'ending', now);
    RETURN ids;
END $$;

CREATE OR REPLACE FUNCTION end_expired(now bigint, reason text, most bigint)
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    ids bigint[];
BEGIN
    ids := ARRAY(SELECT id FROM subscriptions WHERE state = 'active'
        AND lease_end <= now ORDER BY lease_end LIMIT most FOR NO KEY UPDATE SKIP LOCKED);
    PERFORM end_subscriptions(ids, reason, 'ending', now);
    RETURN ids;
END $$;

CREATE OR REPLACE FUNCTION purge_ended(before bigint, most bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    ids bigint[];
BEGIN
    ids := ARRAY(SELECT id FROM subscriptions WHERE state = 'ended'
        AND ended_at < before ORDER BY ended_at, id LIMIT most);
    DELETE FROM dead_letters WHERE subscription_id = ANY(ids);
    DELETE FROM attempts WHERE subscription_id = ANY(ids);
    DELETE FROM subscriptions WHERE id = ANY(ids);
    RETURN cardinality(ids);
END $$;

-- --- beginning ---

CREATE OR REPLACE FUNCTION failing_at(of_feed bigint) RETURNS TABLE (
    fails boolean, error_at bigint
) LANGUAGE sql STABLE AS $$
-- Whether a feed fails, and the position of the record of that error; NULL if the log
-- no longer has it.
SELECT e.position IS NOT NULL OR polling_number(p.polling, 'failures') > 0, e.position
FROM feed_outcomes p LEFT JOIN LATERAL (
    SELECT r.position FROM (SELECT position, kind FROM kept_records
        WHERE feed_id = p.feed_id AND kind IN ('error', 'recovered')
        ORDER BY position DESC LIMIT 1) r WHERE r.kind = 'error'
) e ON TRUE WHERE p.feed_id = of_feed;
$$;

CREATE OR REPLACE FUNCTION subscribe_one(
    account bigint, topic text, normal_topic text, of_feed bigint, given_hash bytea,
    given_callback text, given_secret text, given_secret_hash bytea,
    given_algorithm text, given_format text, given_updates text, given_wants bigint,
    is_batch boolean, given_lease bigint, given_former bigint, is_silent boolean,
    now bigint, must_be_there boolean
) RETURNS bigint LANGUAGE plpgsql AS $$
-- Subscribe; returns the subscription's id, NULL if the account has no such feed. A
-- feed with credentials is the operator's alone, also for earlier subscribers.
DECLARE
    topic_of bigint;
    same subscriptions;
    head bigint;
    failing record;
    is_over boolean;
    is_same boolean;
BEGIN
    PERFORM 1 FROM feeds WHERE id = of_feed AND (credentials = '' OR account = 2)
        AND NOT (must_be_there AND state = 'removed') FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM hold_audience();
    SELECT h.head INTO head FROM log_head h;
    SELECT id INTO topic_of FROM topics t WHERE t.url = topic;
    IF topic_of IS NULL THEN
        INSERT INTO topics (url, feed_id, normal) VALUES (topic, of_feed,
            CASE topic WHEN normal_topic THEN '' ELSE normal_topic END)
        RETURNING id INTO topic_of;
    ELSE
        UPDATE topics SET normal = CASE topic WHEN normal_topic THEN '' ELSE normal_topic END
            WHERE id = topic_of
            AND normal <> CASE topic WHEN normal_topic THEN '' ELSE normal_topic END;
    END IF;
    PERFORM respell(account, topic, normal_topic, topic_of, given_hash, given_callback);
    SELECT * INTO same FROM subscriptions s WHERE s.callback_hash = given_hash
        AND s.topic_id = topic_of AND s.account_id = account FOR NO KEY UPDATE;
    SELECT f.* INTO failing FROM failing_at(of_feed) f;
    IF failing.fails AND same.state IS DISTINCT FROM 'active' THEN
        IF failing.error_at IS NULL THEN
            INSERT INTO awaited_errors VALUES (of_feed) ON CONFLICT DO NOTHING;
        END IF;
    ELSE
        failing.error_at := NULL;
    END IF;
    IF same.id IS NULL THEN
        INSERT INTO subscriptions (account_id, topic_id, feed_id, callback_hash,
            callback, secret, secret_hash, algorithm, format, updates, wants, batch,
            state, from_position, lease_end, created_at, exhausted, ended_reason)
        VALUES (account, topic_of, of_feed, given_hash, given_callback, given_secret,
            given_secret_hash, given_algorithm, given_format, given_updates,
            given_wants, is_batch, 'active',
            CASE WHEN is_silent THEN 9223372036854775807 ELSE head END,
            given_lease, now, FALSE, '')
        RETURNING * INTO same;
    ELSE
        is_over := same.state IN ('ending', 'ended');
        is_same := same.secret_hash = given_secret_hash;
        UPDATE subscriptions s SET
            former_secret = CASE
                WHEN s.secret = '' OR given_secret = '' OR is_over THEN ''
                WHEN is_same THEN s.former_secret
                WHEN given_former IS NULL THEN '' ELSE s.secret END,
            former_until = CASE
                WHEN s.secret = '' OR given_secret = '' OR is_over THEN NULL
                WHEN is_same THEN s.former_until ELSE given_former END,
            secret = given_secret, secret_hash = given_secret_hash,
            algorithm = given_algorithm, format = given_format,
            updates = given_updates, wants = given_wants, batch = is_batch,
            lease_end = given_lease,
            condition = CASE WHEN is_over THEN 'ok' ELSE s.condition END,
            condition_since = CASE WHEN NOT is_over THEN s.condition_since END,
            failure = CASE WHEN is_over THEN '' ELSE s.failure END,
            told_since = CASE WHEN NOT is_over THEN s.told_since END,
            state = 'active', ended_reason = '', ended_at = NULL,
            feed_id = CASE WHEN is_over THEN of_feed ELSE s.feed_id END,
            from_position = CASE WHEN NOT is_over THEN s.from_position
                WHEN is_silent THEN 9223372036854775807 ELSE head END,
            created_at = CASE WHEN is_over THEN now ELSE s.created_at END,
            exhausted = s.exhausted AND NOT is_over
        WHERE s.id = same.id RETURNING * INTO same;
    END IF;
    IF failing.error_at IS NOT NULL AND same.from_position = head THEN
        -- Open a retry that stands before that record and skips what came after it.
        INSERT INTO retries (subscription_id, feed_id, position, attempts, next_try,
            failing_since, last_status, last_error, skip_after, skip_to, lease_id, due)
        SELECT same.id, same.feed_id, failing.error_at - 1, 0, now, now, 0, '',
            CASE WHEN head > failing.error_at THEN failing.error_at END,
            CASE WHEN head > failing.error_at THEN head END, 0, now
        FROM kept_records r WHERE r.position = failing.error_at
            AND same.wants & r.news <> 0;
    END IF;
    RETURN same.id;
END $$;

CREATE OR REPLACE FUNCTION respell(
    account bigint, topic text, normal_topic text, topic_of bigint, given_hash bytea,
    given_callback text
) RETURNS void LANGUAGE plpgsql AS $$
-- Write a subscription's topic and callback as they are spelled now. If there are two,
-- which only former versions made, one stays as it is.
DECLARE
    same bigint;
BEGIN
    SELECT s.id INTO same FROM subscriptions s
        WHERE s.account_id = account AND s.callback_hash = given_hash
        AND s.topic_id IN (SELECT t.id FROM topics t WHERE t.url IN (topic, normal_topic)
            UNION ALL SELECT t.id FROM topics t
                WHERE t.normal = normal_topic AND t.normal <> '')
        ORDER BY s.topic_id <> topic_of, s.id LIMIT 1;
    UPDATE subscriptions SET topic_id = topic_of, callback = given_callback
        WHERE id = same AND (callback, topic_id) <> (given_callback, topic_of);
END $$;

CREATE OR REPLACE FUNCTION subscribe(
    account bigint, topic text, normal_topic text, of_feed bigint, given_hash bytea,
    given_callback text, given_secret text, given_secret_hash bytea,
    given_algorithm text, given_format text, given_updates text, given_wants bigint,
    is_batch boolean, given_lease bigint, given_former bigint, is_silent boolean,
    now bigint, edited bigint
) RETURNS SETOF stored_subscriptions LANGUAGE plpgsql AS $$
-- Subscribe, or edit. `edited`: an active subscription, whose lease stays; NULL: the
-- one with this key.
DECLARE
    lease bigint := given_lease;
    added bigint;
BEGIN
    IF edited IS NOT NULL THEN
        SELECT lease_end INTO lease FROM subscriptions
            WHERE id = edited AND state = 'active';
        IF NOT FOUND THEN
            RETURN;
        END IF;
    END IF;
    added := subscribe_one(account, topic, normal_topic, of_feed, given_hash,
        given_callback, given_secret, given_secret_hash, given_algorithm, given_format,
        given_updates, given_wants, is_batch, lease, given_former, is_silent, now, FALSE);
    RETURN QUERY SELECT * FROM stored_subscriptions WHERE id = added;
END $$;

-- --- pauses ---

CREATE OR REPLACE FUNCTION pause_subscription(wanted bigint, now bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
-- Pause. A record for a paused subscription is owed by its retry, as if it had failed;
-- but a retry of a paused subscription is not claimed.
DECLARE
    is_active boolean;
BEGIN
    PERFORM hold_audience();
    UPDATE subscriptions SET paused_at = coalesce(paused_at, now)
        WHERE id = wanted AND state = 'active';
    is_active := FOUND;
    UPDATE retries SET is_paused = TRUE WHERE subscription_id = wanted;
    IF is_active THEN
        PERFORM note_control('paused', ARRAY[wanted], 0, '');
    END IF;
    RETURN is_active;
END $$;

CREATE OR REPLACE FUNCTION resume_subscription(wanted bigint, now bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
-- Resume. The retry is due at once, unless one of its requests is still under way.
DECLARE
    is_active boolean;
BEGIN
    PERFORM hold_audience();
    UPDATE subscriptions SET paused_at = NULL WHERE id = wanted AND state = 'active';
    is_active := FOUND;
    UPDATE retries SET is_paused = FALSE WHERE subscription_id = wanted AND is_paused;
    IF FOUND THEN
        PERFORM make_due(wanted, now);
    END IF;
    PERFORM note_conditions(ARRAY[wanted], now);
    PERFORM note_control('resumed', ARRAY[wanted], 0, '');
    RETURN is_active;
END $$;

CREATE OR REPLACE FUNCTION make_due(wanted bigint, now bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
-- Schedule a retry for now. A leased one is being tried already, and is not changed.
BEGIN
    UPDATE retries SET
        next_try = CASE lease_id WHEN 0 THEN now ELSE next_try END,
        due = CASE lease_id WHEN 0 THEN now ELSE due END
        WHERE subscription_id = wanted;
    RETURN FOUND;
END $$;

-- --- what follows from changes ---

CREATE OR REPLACE FUNCTION host_of(url text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
SELECT lower(CASE WHEN r LIKE '[%' THEN substr(r, 1, strpos(r, ']'))
    ELSE substring(r FROM '^[^/?#:]*') END)
FROM (SELECT substr(url, strpos(url, '://') + 3) AS r) rest;
$$;

CREATE OR REPLACE FUNCTION count_audience(feed bigint, given_format text, change bigint)
RETURNS void LANGUAGE sql AS $$
INSERT INTO feed_audience AS a VALUES (feed, change,
    change * (given_format = 'as-is')::int, change * (given_format = 'by-topic')::int)
ON CONFLICT (feed_id) DO UPDATE SET subscribers = a.subscribers + excluded.subscribers,
    as_is = a.as_is + excluded.as_is, by_topic = a.by_topic + excluded.by_topic;
$$;

CREATE OR REPLACE FUNCTION list_subscription(wanted bigint) RETURNS void
LANGUAGE sql AS $$
INSERT INTO listings
SELECT s.id, s.account_id, s.topic_id, host_of(t.url), s.callback_hash,
    host_of(s.callback), CASE s.format WHEN 'by-topic' THEN 'atom' ELSE s.format END,
    lower(t.url), lower(s.callback)
FROM subscriptions s JOIN topics t ON t.id = s.topic_id
WHERE s.id = wanted AND s.account_id <> 1 AND s.state = 'active';
$$;

CREATE OR REPLACE FUNCTION subscription_written() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    is_new boolean := TG_OP = 'INSERT';
    is_gone boolean := TG_OP = 'DELETE';
BEGIN
    IF NOT is_gone AND NOT is_new AND (NEW.state, NEW.format, NEW.feed_id)
        = (OLD.state, OLD.format, OLD.feed_id) THEN
        NULL;
    ELSE
        IF NOT is_gone AND NEW.state = 'active' THEN
            PERFORM count_audience(NEW.feed_id, NEW.format, 1);
        END IF;
        IF NOT is_new AND OLD.state = 'active' THEN
            PERFORM count_audience(OLD.feed_id, OLD.format, -1);
        END IF;
    END IF;
    IF is_new THEN
        INSERT INTO subscription_counts VALUES (NEW.account_id, NEW.health, 1);
        PERFORM list_subscription(NEW.id);
    ELSIF is_gone THEN
        INSERT INTO subscription_counts VALUES (OLD.account_id, OLD.health, -1);
        DELETE FROM listings WHERE subscription_id = OLD.id;
        DELETE FROM digests WHERE subscription_id = OLD.id;
    ELSE
        IF NEW.health <> OLD.health THEN
            INSERT INTO subscription_counts VALUES (OLD.account_id, OLD.health, -1),
                (NEW.account_id, NEW.health, 1);
        END IF;
        IF (NEW.state, NEW.topic_id, NEW.callback, NEW.format)
            <> (OLD.state, OLD.topic_id, OLD.callback, OLD.format) THEN
            DELETE FROM listings WHERE subscription_id = NEW.id;
            PERFORM list_subscription(NEW.id);
        END IF;
        IF NEW.state IN ('ending', 'ended') THEN
            DELETE FROM digests WHERE subscription_id = NEW.id;
        END IF;
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER subscription_written
    AFTER INSERT OR UPDATE OR DELETE ON subscriptions
    FOR EACH ROW EXECUTE FUNCTION subscription_written();

CREATE OR REPLACE FUNCTION listing_written() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    l listings := coalesce(NEW, OLD);
    change bigint := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
    INSERT INTO listing_counts AS c
    SELECT l.account_id, k.kind, k.value, l.subscription_id >> 12, change FROM (VALUES
        ('', ''::bytea), ('callback', l.callback_hash),
        ('callback_host', convert_to(l.callback_host, 'UTF8')),
        ('format', convert_to(l.format, 'UTF8')),
        ('topic_host', convert_to(l.topic_host, 'UTF8'))) k (kind, value)
    ON CONFLICT (account_id, kind, value, block)
        DO UPDATE SET total = c.total + excluded.total;
    IF change < 0 THEN
        DELETE FROM listing_counts WHERE account_id = l.account_id
            AND block = l.subscription_id >> 12 AND total = 0;
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER listing_written AFTER INSERT OR DELETE ON listings
    FOR EACH ROW EXECUTE FUNCTION listing_written();
