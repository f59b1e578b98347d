-- Operational events.

CREATE OR REPLACE FUNCTION topic_of_events(name text, hash bytea, now bigint)
RETURNS SETOF stored_feeds LANGUAGE plpgsql AS $$
DECLARE
    known bigint;
BEGIN
    PERFORM hold_resource(hash);
    SELECT id INTO known FROM feeds WHERE resource_hash = hash AND url = name;
    IF known IS NULL THEN
        known := insert_feed(name, 'events', TRUE, '', '', '', '', hash, '', now);
    ELSE
        UPDATE feeds SET state = 'events', removed_at = NULL
            WHERE id = known AND state <> 'events';
    END IF;
    RETURN QUERY SELECT * FROM stored_feeds WHERE id = known;
END $$;

CREATE OR REPLACE FUNCTION publish_events(
    takers jsonb, given_news bigint, given_status bytea, now bigint, most bigint,
    OUT published bigint, OUT head bigint
) LANGUAGE plpgsql AS $$
-- Publish the oldest events, first those of the hub, up to half of the limit. `takers`:
-- the feeds of the topics that take each type of event. While too many of their records
-- wait to be split, events that are not of the hub stay queued.
DECLARE
    waiting bigint;
    room bigint;
    queued event_queue;
    of_hub bigint[];
    ids bigint[];
    feed bigint;
    made records;
BEGIN
    published := 0;
    PERFORM hold_audience();
    SELECT h.head INTO head FROM log_head h;
    SELECT count(*) INTO waiting FROM fanouts f
        JOIN feeds t ON t.id = f.feed_id AND t.state = 'events';
    room := greatest(0, least((most + 1) / 2, 100 - waiting));
    of_hub := ARRAY(SELECT id FROM event_queue WHERE is_of_hub ORDER BY id LIMIT room
        FOR UPDATE SKIP LOCKED);
    room := greatest(0, least(most, 50 - waiting) - cardinality(of_hub));
    ids := of_hub || ARRAY(SELECT id FROM event_queue WHERE id <> ALL(of_hub)
        ORDER BY id LIMIT room FOR UPDATE SKIP LOCKED);
    FOR queued IN SELECT q.* FROM unnest(ids) WITH ORDINALITY u (id, place)
        JOIN event_queue q ON q.id = u.id ORDER BY u.place
    LOOP
        FOR feed IN SELECT f.id FROM jsonb_array_elements_text(
                takers -> (queued.event::jsonb ->> 'type')) t
            JOIN feeds f ON f.id = t::bigint AND f.state = 'events'
            JOIN feed_audience a ON a.feed_id = f.id AND a.subscribers > 0 ORDER BY f.id
        LOOP
            IF head % 1000000 = 999999 THEN
                PERFORM ensure_partitions();
            END IF;
            UPDATE log_head h SET head = h.head + 1 RETURNING h.head INTO head;
            made := ROW(head, now, feed, 'event', given_news, given_status, '', FALSE,
                NULL, queued.event);
            INSERT INTO records SELECT made.*;
            PERFORM fan_out(ARRAY[made]);
        END LOOP;
        published := published + 1;
    END LOOP;
    DELETE FROM event_queue WHERE id = ANY(ids);
END $$;

CREATE OR REPLACE FUNCTION note_hub_conditions(
    begun jsonb, over jsonb, begun_names text[], over_names text[]
) RETURNS void LANGUAGE plpgsql AS $$
-- Queue events of the hub's conditions that begin, and of those that are over. Another
-- hub may have noted them already.
DECLARE
    each record;
BEGIN
    LOCK TABLE hub_conditions IN SHARE ROW EXCLUSIVE MODE;
    FOR each IN SELECT o.name, over -> (o.place::int - 1) AS event
        FROM unnest(over_names) WITH ORDINALITY o (name, place)
    LOOP
        DELETE FROM hub_conditions WHERE name = each.name;
        IF FOUND AND are_events_wanted() THEN
            INSERT INTO event_queue (event, is_of_hub) VALUES (each.event::text, TRUE);
        END IF;
    END LOOP;
    IF NOT are_events_wanted() THEN
        RETURN;
    END IF;
    FOR each IN SELECT b.name, begun -> (b.place::int - 1) AS event
        FROM unnest(begun_names) WITH ORDINALITY b (name, place)
    LOOP
        INSERT INTO hub_conditions VALUES (each.name, each.event::text)
            ON CONFLICT (name) DO NOTHING;
        IF FOUND THEN
            INSERT INTO event_queue (event, is_of_hub) VALUES (each.event::text, TRUE);
        END IF;
    END LOOP;
END $$;
