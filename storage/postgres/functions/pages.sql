-- Which entry each page shows, overall and in each section.

CREATE OR REPLACE FUNCTION last_page_change() RETURNS bigint LANGUAGE sql STABLE AS $$
-- The last change of any page in any section; both are ends of an index.
SELECT greatest(coalesce((SELECT max(change) FROM pages), 0), coalesce(
    (SELECT max((SELECT max(change) FROM section_pages WHERE section = s.name))
        FROM page_sections s), 0));
$$;

CREATE OR REPLACE FUNCTION set_feed_origin(
    feed bigint, given_origin text, former_origin text, was_moved boolean,
    given_head bytea, moved_to text
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF was_moved OR given_origin IS DISTINCT FROM former_origin THEN
        INSERT INTO page_news SELECT id FROM entries WHERE feed_id = feed ORDER BY id
            ON CONFLICT (entry_id) DO NOTHING;
    END IF;
    IF was_moved THEN
        -- Triggers took back what sections showed of the feed when it moved.
        DELETE FROM page_shown WHERE feed_id = feed AND section <> '';
    END IF;
    -- Nothing is noted of a feed that was purged meanwhile.
    INSERT INTO page_origins SELECT id, given_origin FROM feeds WHERE id = feed
        ON CONFLICT (feed_id) DO UPDATE SET origin = excluded.origin;
    -- The row stays if the feed has changed once more meanwhile.
    DELETE FROM page_feeds WHERE feed_id = feed AND (was_moved OR NOT is_moved)
        AND (SELECT head FROM feed_heads WHERE feed_id = feed)
            IS NOT DISTINCT FROM given_head
        AND coalesce((SELECT fetch_url FROM feeds WHERE id = feed), '') = moved_to;
END $$;

CREATE OR REPLACE FUNCTION note_shown(entry bigint, given text, feeds_of jsonb)
RETURNS void LANGUAGE sql AS $$
-- Note that the section has shown text of the entry's feed: if that feed is withdrawn,
-- documents built from the section are withdrawn as well.
INSERT INTO page_shown SELECT f, given FROM (SELECT coalesce(
        (feeds_of ->> entry::text)::bigint,
        (SELECT feed_id FROM entries WHERE id = entry)) AS f) n WHERE f IS NOT NULL
    ON CONFLICT DO NOTHING;
$$;

CREATE OR REPLACE FUNCTION next_modified(stated bigint, published bigint, now bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
-- A page's time of modification, in seconds: what the feed says for a new page, and for
-- a change when it was seen. It is later than the last published one: readers take
-- nothing that is not newer.
SELECT CASE published WHEN 0 THEN greatest(stated, 1)
    ELSE greatest(stated, now / 1000, published + 1) END;
$$;

CREATE OR REPLACE FUNCTION shows_other(
    entry bigint, revision bigint, language text, other_entry bigint,
    other_revision bigint, other_language text
) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
SELECT (entry, revision) IS DISTINCT FROM (other_entry, other_revision)
    OR (language IS NOT NULL OR entry = 0) AND language IS DISTINCT FROM other_language;
$$;

CREATE OR REPLACE FUNCTION page_of(hash bytea, given_url text, now bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
-- The id of the page with this URL, which is made if there is none.
DECLARE
    known bigint;
BEGIN
    SELECT id INTO known FROM pages WHERE url_hash = hash;
    IF known IS NULL THEN
        known := nextval(pg_get_serial_sequence('pages', 'id'));
        INSERT INTO pages (id, url_hash, url, entry_id, revision, modified, change,
            changed_at, dated, shown_at, published, owner)
        VALUES (known, hash, given_url, 0, 0, 0, -known, now, 0, 0, 0, 9);
    END IF;
    RETURN known;
END $$;

CREATE OR REPLACE FUNCTION update_pages(entries_json jsonb, given_now bigint) RETURNS void
LANGUAGE plpgsql AS $$
-- Take entries into the pages: first all entries find their pages, then it is decided
-- what each page shows. Each call has a time of its own, later than all before it,
-- whatever the clock says: a reader who has seen everything up to a time can go on from
-- there.
DECLARE
    now bigint;
    last_change bigint;
    each jsonb;
    entry bigint;
    before page_entries;
    its_page bigint;
    touched bigint[] := '{}';
    moved bigint[] := '{}';
    sections jsonb := '{}';
    feeds_of jsonb := '{}';
    buckets bigint[] := '{}';
    deltas bigint[] := '{}';
    page pages;
    former pages;
    first page_entries;
    of_section page_entries;
    shown section_pages;
    is_other boolean;
    name text;
    stamp bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(1178681931, hashtext(current_schema()));
    SELECT greatest(given_now, coalesce((SELECT changed_at FROM pages p
        ORDER BY p.change DESC LIMIT 1), 0) + 1) INTO now;
    last_change := last_page_change();
    FOR each IN SELECT jsonb_array_elements(entries_json) LOOP
        entry := each ->> 'entry_id';
        SELECT * INTO before FROM page_entries WHERE entry_id = entry;
        its_page := NULL;
        IF each ->> 'url' = '' THEN
            DELETE FROM page_entries WHERE entry_id = entry;
        ELSE
            its_page := page_of(packed(each, 'url_hash'), each ->> 'url', now);
            INSERT INTO page_entries VALUES (entry, its_page, each ->> 'section',
                coalesce((each ->> 'dated')::bigint, now), (each ->> 'revision')::bigint,
                coalesce((each ->> 'modified')::bigint, now) / 1000,
                (each ->> 'rank')::bigint, (each ->> 'owner')::bigint,
                each ->> 'language', (each ->> 'inherits_language')::boolean)
            ON CONFLICT (entry_id) DO UPDATE SET page_id = excluded.page_id,
                section = excluded.section, dated = excluded.dated,
                revision = excluded.revision, stated = excluded.stated,
                rank = excluded.rank, owner = excluded.owner,
                language = excluded.language,
                inherits_language = excluded.inherits_language;
            INSERT INTO page_sections VALUES (each ->> 'section') ON CONFLICT DO NOTHING;
        END IF;
        IF each ->> 'feed_id' IS NOT NULL THEN
            feeds_of := feeds_of || jsonb_build_object(entry::text, each -> 'feed_id');
        END IF;
        DELETE FROM page_news WHERE entry_id = entry AND coalesce(
            (SELECT e.revision FROM entries e WHERE e.id = entry), 0)
            = (each ->> 'revision')::bigint;
        FOR name, former.id IN SELECT s, p FROM (VALUES (1, before.section, before.page_id),
            (2, each ->> 'section', its_page)) v (n, s, p) WHERE p IS NOT NULL ORDER BY n
        LOOP
            IF former.id <> ALL(touched) THEN
                touched := touched || former.id;
            END IF;
            IF (before.page_id, before.section) IS DISTINCT FROM (its_page,
                CASE WHEN its_page IS NOT NULL THEN each ->> 'section' END) THEN
                moved := moved || former.id;
            END IF;
            IF NOT coalesce(sections -> former.id::text ? name, FALSE) THEN
                sections := sections || jsonb_build_object(former.id::text,
                    coalesce(sections -> former.id::text, '[]') || to_jsonb(name));
            END IF;
        END LOOP;
        IF before.page_id IS NOT NULL AND before.page_id IS DISTINCT FROM its_page
            AND NOT (each ->> 'is_dropped')::boolean THEN
            INSERT INTO page_withdrawals SELECT section, 1 FROM page_shown
                WHERE feed_id = (SELECT e.feed_id FROM entries e WHERE e.id = entry);
        END IF;
    END LOOP;

    FOREACH its_page IN ARRAY touched LOOP
        SELECT * INTO former FROM pages p WHERE p.id = its_page;
        SELECT * INTO first FROM page_entries e WHERE e.page_id = former.id
            ORDER BY e.rank, e.dated DESC, e.entry_id DESC LIMIT 1;
        page := former;
        IF first.entry_id IS NULL THEN
            is_other := former.entry_id <> 0;
            page.entry_id := 0;
            page.revision := 0;
            page.language := NULL;
        ELSE
            is_other := shows_other(former.entry_id, former.revision, former.language,
                first.entry_id, first.revision, first.language);
            PERFORM note_shown(first.entry_id, '', feeds_of);
            IF is_other THEN
                page.modified := next_modified(first.stated, former.published, now);
            END IF;
            page.entry_id := first.entry_id;
            page.revision := first.revision;
            page.language := first.language;
            page.owner := first.owner;
            page.dated := first.dated;
            IF former.entry_id = 0 THEN
                page.shown_at := now;
            END IF;
            page.published := greatest(former.published, former.modified, page.modified);
        END IF;
        IF is_other OR its_page = ANY(moved) AND first.entry_id IS NOT NULL THEN
            last_change := last_change + 1;
            UPDATE pages p SET entry_id = page.entry_id, revision = page.revision,
                language = page.language, owner = page.owner, modified = page.modified,
                dated = page.dated, shown_at = page.shown_at, published = page.published,
                change = last_change, changed_at = now WHERE p.id = former.id;
            IF former.entry_id <> 0 THEN
                buckets := buckets || (former.dated >> 14);
                deltas := deltas || -1::bigint;
            END IF;
            IF first.entry_id IS NOT NULL THEN
                buckets := buckets || (first.dated >> 14);
                deltas := deltas || 1::bigint;
            END IF;
        ELSIF (page.language, page.owner) IS DISTINCT FROM (former.language, former.owner)
        THEN
            UPDATE pages p SET language = page.language, owner = page.owner
                WHERE p.id = former.id;
        END IF;
        FOR name IN SELECT s FROM (
                SELECT s, place FROM jsonb_array_elements_text(sections -> its_page::text)
                    WITH ORDINALITY a (s, place)
                UNION ALL
                SELECT DISTINCT e.section, 1000000 FROM page_entries e
                WHERE e.page_id = former.id AND first.entry_id IS NOT NULL
                    AND former.entry_id <> 0 AND page.owner <> former.owner
            ) a WHERE s <> '' GROUP BY s ORDER BY min(place), s
        LOOP
            SELECT * INTO shown FROM section_pages s
                WHERE s.section = name AND s.page_id = former.id;
            of_section := first;
            IF first.entry_id IS NOT NULL AND first.section <> name THEN
                SELECT * INTO of_section FROM page_entries e WHERE e.page_id = former.id
                    AND e.section = name AND e.owner <= page.owner
                    ORDER BY e.rank, e.dated DESC, e.entry_id DESC LIMIT 1;
            END IF;
            IF of_section.entry_id IS NOT NULL THEN
                PERFORM note_shown(of_section.entry_id, name, feeds_of);
            ELSIF coalesce(shown.entry_id, 0) <> 0 THEN
                INSERT INTO page_withdrawals SELECT name, 1 WHERE EXISTS (
                    SELECT 1 FROM page_entries e
                    WHERE e.page_id = former.id AND e.section = name);
            END IF;
            IF NOT shows_other(coalesce(shown.entry_id, 0), coalesce(shown.revision, 0),
                shown.language, coalesce(of_section.entry_id, 0),
                coalesce(of_section.revision, 0), of_section.language) THEN
                IF shown.language IS NULL AND of_section.entry_id IS NOT NULL THEN
                    UPDATE section_pages s SET language = of_section.language
                        WHERE s.section = name AND s.page_id = former.id;
                END IF;
                CONTINUE;
            END IF;
            stamp := coalesce(shown.modified, 0);
            IF of_section.entry_id IS NOT NULL THEN
                IF (page.entry_id, page.revision, page.language) IS NOT DISTINCT FROM
                    (of_section.entry_id, of_section.revision, of_section.language)
                    AND page.modified > stamp THEN
                    stamp := page.modified;
                ELSE
                    stamp := next_modified(of_section.stated, page.published, now);
                    page.published := stamp;
                    UPDATE pages p SET published = page.published WHERE p.id = former.id;
                END IF;
            END IF;
            last_change := last_change + 1;
            INSERT INTO section_pages AS s VALUES (name, former.id,
                coalesce(of_section.entry_id, 0), coalesce(of_section.revision, 0),
                stamp, last_change, of_section.language)
            ON CONFLICT (section, page_id) DO UPDATE SET entry_id = excluded.entry_id,
                revision = excluded.revision, modified = excluded.modified,
                change = excluded.change, language = excluded.language;
        END LOOP;
    END LOOP;

    INSERT INTO page_counts AS c
    SELECT l.level, b.bucket >> l.shift, sum(b.delta)::bigint
    FROM unnest(buckets, deltas) b (bucket, delta),
        (VALUES (0, 21), (1, 14), (2, 7), (3, 0)) l (level, shift)
    GROUP BY 1, 2 HAVING sum(b.delta) <> 0 ORDER BY 1, 2
    ON CONFLICT (level, bucket) DO UPDATE SET pages = c.pages + excluded.pages;
END $$;
