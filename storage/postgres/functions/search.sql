-- The index of words.

CREATE OR REPLACE FUNCTION keep_index(given double precision) RETURNS void
LANGUAGE plpgsql AS $$
-- Cover entries of so many days; 0: the whole index becomes a former index.
DECLARE
    before double precision;
BEGIN
    SELECT days INTO before FROM search_state FOR UPDATE;
    IF before > 0 AND given = 0 THEN
        UPDATE search_state SET generation = generation + 1;
        DELETE FROM search_queue;
    END IF;
    UPDATE search_state SET days = given;
    IF before = 0 THEN
        UPDATE search_state SET position = (SELECT head FROM log_head);
    END IF;
    IF given > before OR given = 0 THEN
        UPDATE search_state SET unread = CASE given WHEN 0 THEN 0
            ELSE (SELECT coalesce(max(id), 0) + 1 FROM entries) END;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION first_docid(milliseconds bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
-- The lowest id of a second: ids follow the documents' dates, so that the newest are
-- found first. All documents dated long ago get ids in one place, with room below.
SELECT greatest(milliseconds / 1000, 1048576) << 4;
$$;

CREATE OR REPLACE FUNCTION free_docid(highest bigint, given bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$
-- The highest free id up to `highest`.
SELECT CASE WHEN NOT EXISTS
        (SELECT 1 FROM searched WHERE generation = given AND docid = highest)
    THEN highest ELSE (
        SELECT s.docid - 1 FROM searched s
        WHERE s.generation = given AND s.docid <= highest AND NOT EXISTS (
            SELECT 1 FROM searched n
            WHERE n.generation = given AND n.docid = s.docid - 1)
        ORDER BY s.docid DESC LIMIT 1) END;
$$;

CREATE OR REPLACE FUNCTION index_documents(
    ids bigint[], given_ids bigint[], documents text[], upto bigint, earliest bigint,
    given_unread bigint
) RETURNS void LANGUAGE plpgsql AS $$
-- Replace what is known of these ids by these documents. Within a second, the lower
-- entry has the higher id, as long as ids are free; then ids of the seconds before are
-- used.
DECLARE
    now_at bigint;
    below bigint := 9223372036854775807;
    each record;
BEGIN
    SELECT generation INTO now_at FROM search_state FOR UPDATE;
    DELETE FROM searched WHERE generation = now_at AND entry_id = ANY(ids);
    DELETE FROM search_queue WHERE entry_id = ANY(ids);
    FOR each IN SELECT e.id, e.sorted_at, d.document
        FROM unnest(given_ids, documents) d (id, document) JOIN entries e ON e.id = d.id
        WHERE NOT e.deleted AND (earliest IS NULL OR e.sorted_at >= earliest)
        ORDER BY floor(e.sorted_at / 1000.0) DESC, e.id
    LOOP
        below := free_docid(
            least(first_docid(each.sorted_at + 1000) - 1, below - 1), now_at);
        INSERT INTO searched VALUES (each.id, now_at, below, each.document::tsvector);
    END LOOP;
    UPDATE search_state SET position = coalesce(upto, position),
        unread = coalesce(given_unread, unread);
END $$;
