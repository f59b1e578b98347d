-- Nodes: one has the database at a time, as long as it renews its term. A term that was
-- not renewed in time continues nevertheless, unless another node has joined meanwhile.

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
-- knows none.
BEGIN
    UPDATE log_head SET epoch = named, identity = server_identity()
        WHERE identity <> server_identity()
            OR known <> '' AND (epoch <> known OR head < upto);
    RETURN (SELECT epoch FROM log_head);
END $$;

CREATE OR REPLACE FUNCTION renew_node(
    given bigint, seconds double precision, named text, known text, upto bigint,
    OUT is_member boolean, OUT log_epoch text, OUT log_end bigint
) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE nodes SET expires_at = clock_timestamp() + make_interval(secs => seconds)
        WHERE incarnation = given;
    is_member := FOUND;
    PERFORM ensure_epoch(named, known, upto);
    SELECT epoch, head INTO log_epoch, log_end FROM log_head;
END $$;

CREATE OR REPLACE FUNCTION free_leases() RETURNS void LANGUAGE sql AS $$
-- Make everything that is leased due at once.
UPDATE chunks SET lease_id = 0, due = 0;
UPDATE retries SET lease_id = 0, due = least(next_try, failing_since),
    next_try = least(next_try, failing_since) WHERE lease_id <> 0;
$$;

CREATE OR REPLACE FUNCTION join_nodes(
    given text, given_url text, seconds double precision,
    OUT given_incarnation bigint, OUT other text
) LANGUAGE plpgsql AS $$
-- Join; without an incarnation: another node is a member. Writes of earlier terms that
-- are under way are waited for; none is stored afterwards.
BEGIN
    LOCK TABLE nodes IN SHARE ROW EXCLUSIVE MODE;
    SELECT name INTO other FROM nodes
        WHERE name <> given AND expires_at > clock_timestamp() LIMIT 1;
    IF other IS NOT NULL THEN
        RETURN;
    END IF;
    DELETE FROM nodes;
    PERFORM hold_audience();
    PERFORM free_leases();
    given_incarnation := nextval('incarnations');
    INSERT INTO nodes VALUES (given, given_url, given_incarnation,
        clock_timestamp() + make_interval(secs => seconds));
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

CREATE OR REPLACE FUNCTION require_term(given bigint) RETURNS void LANGUAGE plpgsql AS $$
-- Refuse writes of a term that is over. A node that takes over waits until the end of
-- this transaction. 0: the writer has never joined.
BEGIN
    IF given = 0 THEN
        RETURN;
    END IF;
    PERFORM 1 FROM nodes WHERE incarnation = given FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'term % is over', given USING ERRCODE = 'FF001';
    END IF;
END $$;
