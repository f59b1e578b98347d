-- Feeds: added, edited, given another state, and purged.

CREATE OR REPLACE FUNCTION without_keys(state bytea, names text[]) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$
-- A polling state, which is JSON, without some of its members; an empty one stays
-- empty.
SELECT CASE state WHEN '' THEN state
    ELSE convert_to((convert_from(state, 'UTF8')::jsonb - names)::text, 'UTF8') END;
$$;

CREATE OR REPLACE FUNCTION polling_number(state bytea, name text)
RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
SELECT CASE state WHEN '' THEN 0 ELSE
    coalesce((convert_from(state, 'UTF8')::jsonb ->> name)::double precision, 0) END;
$$;

CREATE OR REPLACE FUNCTION may_read(viewer bigint, feed feeds) RETURNS boolean
LANGUAGE sql STABLE AS $$
-- Whether a viewer may read a feed. NULL, the operator, reads everything; 0 reads what
-- is public. A private feed is readable by accounts that subscribe to it, one with
-- credentials only by the operator, and a track query's results by the account that
-- owns the query.
SELECT feed.state <> 'removed' AND (viewer IS NULL OR feed.credentials = '' AND (
    NOT feed.private
    OR EXISTS (SELECT 1 FROM subscriptions u WHERE u.account_id = viewer
        AND u.feed_id = feed.id AND u.state = 'active')
    OR feed.state = 'track' AND viewer <> 0 AND EXISTS (SELECT 1 FROM track_queries q
        WHERE q.feed_id = feed.id AND q.account_id IN (viewer, 0))));
$$;

CREATE OR REPLACE FUNCTION viewer_of(topic bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
-- The viewer who owns the track query that a feed stands for; 0, nobody, for any other
-- feed.
SELECT nullif(coalesce(max(account_id), 0), 2) FROM track_queries WHERE feed_id = topic;
$$;

CREATE OR REPLACE FUNCTION likely_feeds(resource bytea, topic text)
RETURNS SETOF feeds LANGUAGE sql STABLE AS $$
-- Feeds of a resource, the most likely first; if there are none, the feed that a
-- subscribed topic leads to. Of two that are spelled alike, the one with credentials is
-- the operator's own, and comes before the one that others get by subscribing.
SELECT * FROM feeds f WHERE f.resource_hash = resource OR f.id = (
    SELECT t.feed_id FROM topics t WHERE t.url = topic
    AND NOT EXISTS (SELECT 1 FROM feeds WHERE resource_hash = resource))
ORDER BY f.url = topic AND (f.state <> 'removed' OR f.credentials <> '') DESC,
    f.state <> 'removed' DESC, (f.credentials = '') = (f.url <> topic) DESC, f.id;
$$;

CREATE OR REPLACE FUNCTION insert_feed(
    given_url text, given_state text, is_private boolean, given_category text,
    given_title text, encrypted text, fingerprint bytea, resource bytea, page bytea,
    now bigint
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    added bigint;
BEGIN
    INSERT INTO feeds (url, state, private, category, title, format, created_at,
        fetch_url, credentials, credentials_hash, resource_hash, page_hash)
    VALUES (given_url, given_state, is_private, given_category, given_title, '', now,
        '', encrypted, fingerprint, resource, page)
    RETURNING id INTO added;
    INSERT INTO feed_hot (feed_id, next_fetch) VALUES (added, now);
    INSERT INTO feed_outcomes (feed_id) VALUES (added);
    INSERT INTO feed_audience (feed_id) VALUES (added);
    INSERT INTO schedule VALUES (added, now, given_state = 'active', 11);
    RETURN added;
END $$;

CREATE OR REPLACE FUNCTION hold_resource(resource bytea) RETURNS void
LANGUAGE plpgsql AS $$
-- Lock the resource, so that two who add the same feed at once find one feed.
BEGIN
    PERFORM pg_advisory_xact_lock(1178681929, hashtext(encode(resource, 'hex')));
END $$;

CREATE OR REPLACE FUNCTION add_feed(
    given_url text, is_private boolean, as_anybody boolean, given_category text,
    encrypted text, fingerprint bytea, given_title text, given_description text,
    resource bytea, page bytea, now bigint
) RETURNS TABLE (feed stored_feeds, is_new boolean) LANGUAGE plpgsql AS $$
-- Add a feed, or find it. A known feed has the same spelling, or the same credentials.
-- Under another spelling, other credentials make another feed: what one set of
-- credentials shows must not be sent to subscribers of the other feed.
DECLARE
    known bigint;
BEGIN
    PERFORM hold_resource(resource);
    SELECT f.id INTO known FROM likely_feeds(resource, given_url) f
        WHERE (NOT as_anybody OR f.credentials = '')
        AND (f.url = given_url OR f.credentials_hash = fingerprint) LIMIT 1;
    is_new := known IS NULL;
    IF is_new THEN
        known := insert_feed(given_url, 'active', is_private, given_category,
            given_title, encrypted, fingerprint, resource, page, now);
        INSERT INTO feed_statistics (feed_id, due) VALUES (known, now + 600000);
        IF given_title <> '' OR given_description <> '' THEN
            INSERT INTO given_names VALUES (known, given_title, given_description);
        END IF;
    ELSE
        PERFORM add_again(known, is_private, given_category, encrypted, fingerprint,
            now);
    END IF;
    RETURN QUERY SELECT v, add_feed.is_new FROM stored_feeds v WHERE v.id = known;
END $$;

CREATE OR REPLACE FUNCTION add_again(
    known bigint, is_private boolean, given_category text, encrypted text,
    fingerprint bytea, now bigint
) RETURNS void LANGUAGE plpgsql AS $$
-- Add a known feed again. Its next fetch stays: this is no reason to fetch early. A
-- removed feed keeps all it had, but counts as not fetched yet: it may have changed.
BEGIN
    UPDATE feeds SET state = 'active', turned_at = now
        WHERE id = known AND state IN ('gone', 'dead');
    IF FOUND THEN
        PERFORM raise_version(known);
    END IF;
    UPDATE feeds SET
        private = is_private OR credentials <> '' OR encrypted <> '',
        category = CASE given_category WHEN '' THEN category ELSE given_category END,
        credentials = CASE encrypted WHEN '' THEN credentials ELSE encrypted END,
        credentials_hash =
            CASE encrypted WHEN '' THEN credentials_hash ELSE fingerprint END,
        state = 'active', turned_at = now, removed_at = NULL
        WHERE id = known AND state = 'removed';
    IF FOUND THEN
        PERFORM raise_version(known);
        UPDATE feed_outcomes SET polling = convert_to(
            (convert_from(polling, 'UTF8')::jsonb || '{"last_fetch": null}')::text, 'UTF8')
            WHERE feed_id = known AND polling <> '';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION raise_version(feed bigint) RETURNS void LANGUAGE sql AS $$
-- From now on a fetch that was decided before is stale. The row of the feed itself is
-- locked before.
UPDATE feed_hot SET version = version + 1 WHERE feed_id = feed;
$$;

CREATE OR REPLACE FUNCTION edit_feed(
    wanted bigint, is_private boolean, given_category text, given_period double precision,
    encrypted text, fingerprint bytea, given_url text, resource bytea, page bytea,
    shut_out text, reason text, now bigint
) RETURNS TABLE (feed stored_feeds, ended bigint[]) LANGUAGE plpgsql AS $$
-- Edit a feed; NULL: unchanged. `shut_out`: whose subscriptions end. Returns no row if
-- there is no such feed.
BEGIN
    UPDATE feeds f SET
        credentials = coalesce(encrypted, f.credentials),
        credentials_hash = coalesce(fingerprint, f.credentials_hash),
        private = coalesce(is_private, f.private)
            OR coalesce(encrypted, f.credentials) <> '',
        category = coalesce(given_category, f.category),
        own_period = coalesce(given_period, f.own_period)
        WHERE f.id = wanted AND f.state <> 'removed';
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM raise_version(wanted);
    PERFORM hold_audience();
    IF given_url IS NOT NULL THEN
        PERFORM move_feed(wanted, given_url, resource, page, now);
    END IF;
    ended := '{}';
    IF shut_out IS NOT NULL THEN
        ended := end_of_feed(wanted, reason, now, NULL, shut_out);
        PERFORM note_control('hidden', ARRAY[wanted], 0, '');
    END IF;
    RETURN QUERY SELECT v, edit_feed.ended FROM stored_feeds v WHERE v.id = wanted;
END $$;

CREATE OR REPLACE FUNCTION move_feed(
    wanted bigint, given_url text, resource bytea, page bytea, now bigint
) RETURNS void LANGUAGE plpgsql AS $$
-- Give a feed another URL, at which it is due; the former URL still leads to it. Fields
-- of the polling state that are true of one URL only are dropped.
BEGIN
    INSERT INTO topics (url, feed_id)
        SELECT f.url, f.id FROM feeds f WHERE f.id = wanted AND f.url <> given_url
        AND NOT EXISTS (SELECT 1 FROM topics t WHERE t.url = f.url)
        ON CONFLICT (url) DO NOTHING;
    UPDATE feeds SET url = given_url, resource_hash = resource, page_hash = page,
        fetch_url = '', polling = without_keys(polling, ARRAY['fetch_url', 'redirect',
            'validators', 'found_at', 'body_hash']),
        turned_at = CASE WHEN state IN ('gone', 'dead') THEN now ELSE turned_at END,
        state = CASE WHEN state IN ('gone', 'dead') THEN 'active' ELSE state END
        WHERE id = wanted;
    UPDATE feed_outcomes SET polling = without_keys(polling, ARRAY['gone_sightings',
        'missing_sightings', 'missing_since', 'retry_after', 'fresh_until'])
        WHERE feed_id = wanted;
    UPDATE feed_hot SET fresh_for = -1, next_fetch = now WHERE feed_id = wanted;
    UPDATE schedule SET next_fetch = now WHERE feed_id = wanted;
END $$;

CREATE OR REPLACE FUNCTION turn_feed(
    wanted bigint, given_state text, now bigint, given_fetch bigint
) RETURNS TABLE (feed stored_feeds, was_query boolean) LANGUAGE plpgsql AS $$
DECLARE
    former text;
BEGIN
    SELECT state INTO former FROM feeds WHERE id = wanted FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM hold_audience();
    PERFORM raise_version(wanted);
    UPDATE feeds SET state = given_state,
        turned_at = CASE state WHEN given_state THEN turned_at ELSE now END,
        condition_since = CASE WHEN state = 'paused' AND given_state = 'active'
            AND condition <> 'failing' THEN now ELSE condition_since END,
        removed_at = CASE given_state WHEN 'removed' THEN coalesce(removed_at, now) END
        WHERE id = wanted;
    IF given_fetch IS NOT NULL THEN
        UPDATE feed_hot SET next_fetch = given_fetch WHERE feed_id = wanted;
        UPDATE schedule SET next_fetch = given_fetch WHERE feed_id = wanted;
    END IF;
    IF former = 'track' AND given_state <> 'track' THEN
        PERFORM note_control('went', ARRAY[wanted], 0, '');
    END IF;
    IF given_state = 'removed' THEN
        PERFORM note_control('hidden', ARRAY[wanted], 0, '');
    END IF;
    RETURN QUERY SELECT v, former = 'track' AND given_state <> 'track'
        FROM stored_feeds v WHERE v.id = wanted;
END $$;

CREATE OR REPLACE FUNCTION spread_overdue(
    now bigint, longest double precision, per_second double precision
) RETURNS bigint LANGUAGE plpgsql AS $$
-- Spread overdue feeds: fractions of multiples of the golden ratio are evenly spread.
DECLARE
    number bigint;
BEGIN
    CREATE TEMP TABLE overdue ON COMMIT DROP AS
        SELECT s.feed_id, h.period, row_number() OVER (ORDER BY s.feed_id) AS place
        FROM schedule s JOIN feed_hot h ON h.feed_id = s.feed_id
        WHERE s.is_active AND s.next_fetch < now AND h.last_fetch IS NOT NULL;
    GET DIAGNOSTICS number = ROW_COUNT;
    UPDATE feed_hot h SET next_fetch = now + floor(1000
        * least(o.period, longest, number / per_second)
        * (o.place * 2654435769 % 4294967296) / 4294967296.0)::bigint
        FROM overdue o WHERE o.feed_id = h.feed_id;
    UPDATE schedule s SET next_fetch = h.next_fetch
        FROM overdue o JOIN feed_hot h ON h.feed_id = o.feed_id
        WHERE s.feed_id = o.feed_id;
    RETURN number;
END $$;

CREATE OR REPLACE FUNCTION put_next_fetches(ids bigint[], times bigint[]) RETURNS void
LANGUAGE sql AS $$
UPDATE feed_hot h SET next_fetch = g.at
    FROM unnest(ids, times) g (id, at) WHERE h.feed_id = g.id;
UPDATE schedule s SET next_fetch = g.at
    FROM unnest(ids, times) g (id, at) WHERE s.feed_id = g.id;
$$;

CREATE OR REPLACE FUNCTION restore_schedule(after bigint, most bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
-- Fill the schedule of at most so many feeds behind one; returns the last of them, NULL
-- when it is whole. Meanwhile nobody else writes it, so what is missing is as it was
-- committed.
DECLARE
    last bigint;
BEGIN
    LOCK TABLE schedule IN SHARE ROW EXCLUSIVE MODE;
    SELECT max(feed_id) INTO last FROM (SELECT feed_id FROM feed_hot
        WHERE feed_id > after ORDER BY feed_id LIMIT most) h;
    INSERT INTO schedule SELECT h.feed_id, h.next_fetch, f.state = 'active', h.pace
        FROM feed_hot h JOIN feeds f ON f.id = h.feed_id
        WHERE h.feed_id > after AND h.feed_id <= last AND f.id > after AND f.id <= last
        ON CONFLICT (feed_id) DO NOTHING;
    IF last IS NULL THEN
        INSERT INTO schedule VALUES (0, 0, FALSE, 0) ON CONFLICT (feed_id) DO NOTHING;
    END IF;
    RETURN last;
END $$;

CREATE OR REPLACE FUNCTION hold_hosts(hosts text[], times bigint[], now bigint)
RETURNS void LANGUAGE sql AS $$
DELETE FROM host_holds WHERE until <= now;
INSERT INTO host_holds AS h
    SELECT g.host, max(g.until) FROM unnest(hosts, times) g (host, until)
    GROUP BY g.host ORDER BY g.host
    ON CONFLICT (host) DO UPDATE SET until = greatest(h.until, excluded.until);
$$;

CREATE OR REPLACE FUNCTION purge_feed(before bigint, wanted bigint, most bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
-- Delete at most so many rows of a feed; returns whether it is gone, or active again.
DECLARE
    rest bigint := most;
    deleted bigint;
    name text;
BEGIN
    PERFORM 1 FROM feeds WHERE id = wanted AND state = 'removed' AND removed_at < before
        FOR UPDATE;
    IF NOT FOUND THEN
        RETURN TRUE;
    END IF;
    PERFORM hold_audience();
    DELETE FROM entries WHERE id IN
        (SELECT id FROM entries WHERE feed_id = wanted LIMIT rest);
    GET DIAGNOSTICS deleted = ROW_COUNT;
    rest := rest - deleted;
    DELETE FROM records WHERE position IN
        (SELECT position FROM records WHERE feed_id = wanted LIMIT rest);
    GET DIAGNOSTICS deleted = ROW_COUNT;
    rest := rest - deleted;
    DELETE FROM site_pages WHERE feed_id = wanted AND key_hash IN
        (SELECT key_hash FROM site_pages WHERE feed_id = wanted LIMIT rest);
    GET DIAGNOSTICS deleted = ROW_COUNT;
    rest := rest - deleted;
    DELETE FROM attempts WHERE id IN (SELECT a.id FROM subscriptions s
        JOIN attempts a ON a.subscription_id = s.id WHERE s.feed_id = wanted LIMIT rest);
    GET DIAGNOSTICS deleted = ROW_COUNT;
    IF deleted >= rest THEN
        RETURN FALSE;
    END IF;
    FOREACH name IN ARRAY ARRAY['dead_letters', 'attempts', 'retries', 'digests'] LOOP
        EXECUTE format('DELETE FROM %I WHERE subscription_id IN'
            ' (SELECT id FROM subscriptions WHERE feed_id = $1)', name) USING wanted;
    END LOOP;
    DELETE FROM subscriptions WHERE feed_id = wanted;
    DELETE FROM topics t WHERE feed_id = wanted
        AND NOT EXISTS (SELECT 1 FROM subscriptions WHERE topic_id = t.id);
    FOREACH name IN ARRAY ARRAY['deliveries', 'chunks', 'fanouts', 'fanout_turns',
        'records', 'trimmed', 'entries', 'bodies', 'feed_heads', 'seen_sets', 'slices',
        'inventories', 'raw_documents', 'site_pages', 'site_states', 'page_feeds',
        'page_origins', 'page_shown', 'schedule', 'track_queries', 'feed_statistics',
        'feed_links', 'pushes', 'push_callbacks', 'given_names', 'awaited_errors',
        'earlier_polls', 'feed_hot', 'feed_outcomes', 'feed_audience'] LOOP
        EXECUTE format('DELETE FROM %I WHERE feed_id = $1', name) USING wanted;
    END LOOP;
    DELETE FROM feeds WHERE id = wanted;
    RETURN TRUE;
END $$;

-- --- what follows from changes ---

CREATE OR REPLACE FUNCTION note_withdrawal(of_feed bigint, but_of_all boolean)
RETURNS void LANGUAGE sql AS $$
INSERT INTO page_withdrawals SELECT section, 1 FROM page_shown
    WHERE feed_id = of_feed AND NOT (but_of_all AND section = '');
$$;

CREATE OR REPLACE FUNCTION feed_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO feed_counts VALUES (NEW.health, NEW.category, 1);
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER feed_inserted AFTER INSERT ON feeds
    FOR EACH ROW EXECUTE FUNCTION feed_inserted();

CREATE OR REPLACE FUNCTION feed_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO feed_counts VALUES (OLD.health, OLD.category, -1);
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER feed_deleted AFTER DELETE ON feeds
    FOR EACH ROW EXECUTE FUNCTION feed_deleted();

CREATE OR REPLACE FUNCTION feed_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    was_hidden boolean := OLD.private OR OLD.unlisted OR OLD.state = 'removed';
    is_hidden boolean := NEW.private OR NEW.unlisted OR NEW.state = 'removed';
BEGIN
    IF (NEW.health, NEW.category) <> (OLD.health, OLD.category) THEN
        INSERT INTO feed_counts VALUES (OLD.health, OLD.category, -1),
            (NEW.health, NEW.category, 1);
    END IF;
    IF NEW.state <> OLD.state THEN
        UPDATE schedule SET is_active = NEW.state = 'active' WHERE feed_id = NEW.id;
        UPDATE pushes SET due = 0 WHERE feed_id = NEW.id;
    END IF;
    IF is_hidden AND NOT was_hidden THEN
        PERFORM note_withdrawal(NEW.id, FALSE);
    END IF;
    IF NEW.category <> OLD.category THEN
        PERFORM note_withdrawal(NEW.id, TRUE);
    END IF;
    IF (NEW.url, NEW.private, NEW.category, NEW.unlisted, NEW.state = 'removed')
        <> (OLD.url, OLD.private, OLD.category, OLD.unlisted, OLD.state = 'removed') THEN
        INSERT INTO page_feeds VALUES (NEW.id, TRUE)
            ON CONFLICT (feed_id) DO UPDATE SET is_moved = TRUE;
    ELSIF NEW.fetch_url <> OLD.fetch_url THEN
        INSERT INTO page_feeds VALUES (NEW.id, FALSE) ON CONFLICT (feed_id) DO NOTHING;
    END IF;
    IF NEW.format <> OLD.format THEN
        PERFORM drop_unwanted_body(NEW.id);
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER feed_changed AFTER UPDATE ON feeds
    FOR EACH ROW WHEN ((OLD.health, OLD.category, OLD.state, OLD.private, OLD.unlisted,
        OLD.url, OLD.fetch_url, OLD.format) IS DISTINCT FROM (NEW.health, NEW.category,
        NEW.state, NEW.private, NEW.unlisted, NEW.url, NEW.fetch_url, NEW.format))
    EXECUTE FUNCTION feed_changed();

CREATE OR REPLACE FUNCTION keeps_document(feed bigint) RETURNS boolean
LANGUAGE sql STABLE AS $$
-- Whether an active subscription is sent the document itself.
SELECT coalesce(bool_or(a.as_is > 0 OR (a.by_topic > 0 AND f.format IN ('', 'part'))),
    FALSE) FROM feed_audience a JOIN feeds f ON f.id = a.feed_id WHERE a.feed_id = feed;
$$;

CREATE OR REPLACE FUNCTION drop_unwanted_body(feed bigint) RETURNS void
LANGUAGE sql AS $$
DELETE FROM bodies WHERE feed_id = feed AND NOT keeps_document(feed);
$$;

CREATE OR REPLACE FUNCTION audience_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM drop_unwanted_body(NEW.feed_id);
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER audience_changed AFTER UPDATE ON feed_audience
    FOR EACH ROW WHEN (NEW.as_is < OLD.as_is OR NEW.by_topic < OLD.by_topic)
    EXECUTE FUNCTION audience_changed();

CREATE OR REPLACE FUNCTION head_written() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO page_feeds VALUES (NEW.feed_id, FALSE) ON CONFLICT (feed_id) DO NOTHING;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER head_written AFTER INSERT OR UPDATE ON feed_heads
    FOR EACH ROW EXECUTE FUNCTION head_written();
