-- Nodes: each renews its term. A node whose term is over is removed by the next one that
-- joins or renews, and only then is free what it held: a term that was renewed too late
-- continues if nobody was faster.

CREATE OR REPLACE FUNCTION lease_time(hub_time bigint) RETURNS bigint LANGUAGE sql AS $$
-- The time in milliseconds by the clock that judges leases: this server's, whatever the
-- hub that asks takes the time to be. Tests in played time put the hub's in its place.
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
$$;

CREATE OR REPLACE FUNCTION server_identity() RETURNS text LANGUAGE sql STABLE AS $$
-- A text that changes with a promotion, with a recovery to a point in time, and in a
-- copy.
SELECT s.system_identifier || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
    || '/' || d.oid
FROM pg_control_system() s, pg_database d WHERE d.datname = current_database();
$$;

CREATE OR REPLACE FUNCTION ensure_epoch(named text, known text, upto bigint) RETURNS text
LANGUAGE plpgsql AS $$
-- The epoch of the log. A new one, `named`, begins if records may be missing that
-- readers have seen. The hub has seen records of the epoch `known` up to `upto`; '': it
-- knows none. One that knows a former epoch learns of the present one.
BEGIN
    UPDATE log_head SET epoch = named, identity = server_identity(),
            former_epochs = array_remove(former_epochs || epoch, '')
        WHERE identity <> server_identity()
            OR known = epoch AND head < upto
            OR known NOT IN ('', epoch) AND known <> ALL(former_epochs);
    RETURN (SELECT epoch FROM log_head);
END $$;

CREATE OR REPLACE FUNCTION free_leases() RETURNS void LANGUAGE sql AS $$
-- Make everything due at once that no member holds. The schedule of a retry stays: a try
-- ahead of it is still not counted. One that has not failed at its record has none, and
-- its next try is the first.
DELETE FROM claims WHERE incarnation NOT IN (SELECT incarnation FROM nodes);
UPDATE chunks SET lease_id = 0, due = 0, incarnation = 0
    WHERE incarnation NOT IN (SELECT incarnation FROM nodes);
UPDATE retries SET lease_id = 0, incarnation = 0, due = least(next_try, failing_since),
    next_try = CASE attempts WHEN 0 THEN least(next_try, failing_since) ELSE next_try END
    WHERE lease_id <> 0 AND incarnation NOT IN (SELECT incarnation FROM nodes);
$$;

CREATE OR REPLACE FUNCTION remove_silent_nodes(except_for bigint) RETURNS void
LANGUAGE plpgsql AS $$
-- Remove nodes whose terms are over. Their writes that are under way are waited for;
-- none is stored afterwards.
BEGIN
    IF NOT EXISTS (SELECT 1 FROM nodes
        WHERE expires_at <= clock_timestamp() AND incarnation <> except_for) THEN
        RETURN;
    END IF;
    LOCK TABLE nodes IN SHARE UPDATE EXCLUSIVE MODE;
    DELETE FROM nodes WHERE expires_at <= clock_timestamp() AND incarnation <> except_for;
    PERFORM hold_audience();
    PERFORM free_leases();
END $$;

CREATE OR REPLACE FUNCTION shard_of(url text) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
-- The shard of a URL, by its host alone: so one node keeps the pace of a host.
SELECT get_byte(sha256(convert_to(coalesce(substring(lower(url) FROM
    '^[a-z0-9+.-]+://(?:[^/?#]*@)?(\[[^]]*\]|[^/:?#]*)'), ''), 'UTF8')), 0)::smallint;
$$;

CREATE OR REPLACE FUNCTION owns_shard(node bigint, of_kind text, url text) RETURNS boolean
LANGUAGE sql STABLE AS $$
-- Whether a node may begin what is due there. 0: a node that owns everything.
SELECT node = 0 OR EXISTS (SELECT 1 FROM shards s WHERE s.kind = of_kind
    AND s.id = shard_of(url) AND s.incarnation = node AND s.given_up_at IS NULL);
$$;

CREATE OR REPLACE FUNCTION owns_feed(node bigint, feed bigint) RETURNS boolean
LANGUAGE sql STABLE AS $$
-- Whether a node may begin what is due of a feed: by the host that it is fetched from.
SELECT node = 0 OR owns_shard(node, 'feeds', coalesce(
    (SELECT coalesce(nullif(fetch_url, ''), url) FROM feeds WHERE id = feed), ''));
$$;

CREATE OR REPLACE FUNCTION divide_shards(
    given bigint, OUT feeds bigint[], OUT callbacks bigint[], OUT is_leader boolean
) LANGUAGE plpgsql AS $$
-- The shards of a member from now on; NULL: all, as it is alone. Each shard is to belong
-- to the member of the highest hash, so that few move when one comes or goes. A shard
-- that its owner is to give up is free 20 s later: as long as what is under way may take.
BEGIN
    is_leader := TRUE;
    IF NOT EXISTS (SELECT 1 FROM nodes WHERE incarnation = given AND NOT is_alone) THEN
        RETURN;
    END IF;
    LOCK TABLE shards IN SHARE ROW EXCLUSIVE MODE;
    UPDATE shards SET incarnation = 0, given_up_at = NULL
        WHERE incarnation <> 0 AND (incarnation NOT IN (SELECT n.incarnation FROM nodes n)
            OR given_up_at <= clock_timestamp() - interval '20 s');
    UPDATE shards s SET incarnation = given,
            given_up_at = CASE WHEN w.owner <> given
                THEN coalesce(s.given_up_at, clock_timestamp()) END
        FROM (SELECT DISTINCT ON (c.kind, c.id) c.kind, c.id, n.incarnation AS owner
            FROM shards c CROSS JOIN nodes n
            ORDER BY c.kind, c.id, md5(n.name || '/' || c.kind || '/' || c.id)) w
        WHERE w.kind = s.kind AND w.id = s.id AND (
            s.incarnation = 0 AND w.owner = given
            OR s.incarnation = given AND (w.owner <> given) = (s.given_up_at IS NULL));
    SELECT coalesce(array_agg(id) FILTER (WHERE kind = 'feeds'), '{}'),
            coalesce(array_agg(id) FILTER (WHERE kind = 'callbacks'), '{}'),
            coalesce(bool_or(kind = 'leader'), FALSE)
        INTO feeds, callbacks, is_leader
        FROM shards WHERE incarnation = given AND given_up_at IS NULL;
END $$;

CREATE OR REPLACE FUNCTION renew_node(
    given bigint, seconds double precision, named text, known text, upto bigint,
    OUT is_member boolean, OUT log_epoch text, OUT log_end bigint,
    OUT feeds bigint[], OUT callbacks bigint[], OUT is_leader boolean
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM remove_silent_nodes(given);
    UPDATE nodes SET expires_at = clock_timestamp() + make_interval(secs => seconds)
        WHERE incarnation = given;
    is_member := FOUND;
    PERFORM ensure_epoch(named, known, upto);
    SELECT epoch, head INTO log_epoch, log_end FROM log_head;
    SELECT d.* INTO feeds, callbacks, is_leader FROM divide_shards(given) d;
END $$;

CREATE OR REPLACE FUNCTION join_nodes(
    given text, given_url text, seconds double precision, given_is_alone boolean,
    given_schema bigint,
    OUT given_incarnation bigint, OUT other text, OUT last_event bigint,
    OUT feeds bigint[], OUT callbacks bigint[], OUT is_leader boolean
) LANGUAGE plpgsql AS $$
-- Join, in the place of an earlier term of that name. Without an incarnation: another
-- node is a member, and one of the two has to be alone. Writes of terms that end here
-- are waited for; none is stored afterwards. `given_schema`: the newest that the program
-- knows.
BEGIN
    LOCK TABLE nodes IN SHARE ROW EXCLUSIVE MODE;
    IF given_schema < (SELECT oldest_program FROM fanfare_schema) THEN
        RAISE EXCEPTION 'the database was migrated meanwhile; upgrade this hub';
    END IF;
    SELECT name INTO other FROM nodes
        WHERE name <> given AND expires_at > clock_timestamp()
            AND (is_alone OR given_is_alone)
        LIMIT 1;
    IF other IS NOT NULL THEN
        RETURN;
    END IF;
    DELETE FROM nodes WHERE name = given OR expires_at <= clock_timestamp();
    PERFORM hold_audience();
    given_incarnation := nextval('incarnations');
    INSERT INTO nodes (name, url, incarnation, expires_at, is_alone, schema_version)
        VALUES (given, given_url, given_incarnation,
            clock_timestamp() + make_interval(secs => seconds), given_is_alone,
            given_schema);
    PERFORM free_leases();
    SELECT d.* INTO feeds, callbacks, is_leader FROM divide_shards(given_incarnation) d;
    last_event := (SELECT coalesce(max(id), 0) FROM control);
    DELETE FROM lanes WHERE used_at < now() - interval '1 day';
END $$;

CREATE OR REPLACE FUNCTION leave_nodes(given bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM nodes WHERE incarnation = given;
    IF FOUND THEN
        PERFORM hold_audience();
        PERFORM free_leases();
    END IF;
END $$;

CREATE OR REPLACE FUNCTION term_key(given bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$
-- Of the lock that all writes of a term share, and that its end waits for. Unlike a lock
-- on the node's row it is not logged.
SELECT hashtextextended('term of ' || current_schema(), given);
$$;

CREATE OR REPLACE FUNCTION require_term(given bigint) RETURNS void LANGUAGE plpgsql AS $$
-- Refuse writes of a term that is over. A node that takes over waits until the end of
-- this transaction. 0: the writer has never joined.
BEGIN
    IF given = 0 THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock_shared(term_key(given));
    IF NOT EXISTS (SELECT 1 FROM nodes WHERE incarnation = given) THEN
        RAISE EXCEPTION 'term % is over', given USING ERRCODE = 'FF001';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION await_writes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(term_key(OLD.incarnation));
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER nodes_end AFTER DELETE ON nodes
    FOR EACH ROW EXECUTE FUNCTION await_writes();
