"""`storage.contract.FeedStore` on SQLite.

Of the due feeds, the one that is latest relative to its own period comes first (see
`storage.records.Pace`). The first rows of each pace's range of an index are read, and
the latest of all are chosen. So a page costs the same however many feeds are overdue.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache, partial

import msgspec

from storage.errors import NotFound
from storage.records import (
    COLD_FIELDS,
    HOT_FIELDS,
    PACES,
    UNKNOWN_PACE,
    AccountId,
    Credentials,
    DueFeed,
    FeedChange,
    FeedId,
    FeedState,
    FetchTarget,
    HiddenFeeds,
    NewFeed,
    Pace,
    PlaceByPace,
    Poll,
    Posting,
    StoredFeed,
    SubscriptionId,
)
from storage.secrets import SecretBox
from storage.sqlite.columns import (
    from_milliseconds,
    from_milliseconds_or_none,
    pack_ids,
    to_milliseconds,
    to_milliseconds_or_none,
)
from storage.sqlite.control import SqliteControl
from storage.sqlite.feed_access import (
    OF_RESOURCE,
    WITHOUT_CREDENTIALS,
    find_known,
    hash_page,
    hash_resource,
    may_read,
    resource_keys,
)
from storage.sqlite.polls import POLLS, POLLS_OF_MANY, last_failures, unpack_polls
from storage.sqlite.purging import ROWS_PURGED, purge_removed_feed
from storage.sqlite.readers import Readers, Row
from storage.sqlite.rows import (
    PUSH,
    encrypt_credentials,
    read_due,
    read_feed,
    read_posting,
    read_target,
)
from storage.sqlite.subscription_writes import NO_LIMIT, end_of_feed
from storage.sqlite.writer import Assignments, Writer, assigned

# --- which are due ---


def _range(pace: int, has_place: bool) -> str:
    """SQL for the feeds of one pace that follow its place, by (next_fetch, feed_id).

    Feeds due at exactly the place's time are a separate range. If pairs were compared,
    the index would find only the time, and every page would read all feeds due then.
    """
    found = (
        "SELECT feed_id, next_fetch, pace FROM schedule"
        f" WHERE is_active = 1 AND pace = {pace}"
    )
    at, feed_id = f":at_{pace}", f":feed_{pace}"
    at_place = (
        f"SELECT * FROM ({found} AND next_fetch = {at} AND {at} <= :now"
        f" AND feed_id > {feed_id} ORDER BY feed_id LIMIT :limit) UNION ALL "
    )
    behind = f" AND next_fetch > {at}"
    return (
        f"{at_place if has_place else ''}SELECT * FROM ({found} AND next_fetch <= :now"
        f"{behind if has_place else ''} ORDER BY next_fetch, feed_id LIMIT :limit)"
    )


def _first(pace: int) -> str:
    return (
        "SELECT min(next_fetch) AS first FROM schedule"
        f" WHERE is_active = 1 AND pace = {pace}"
    )


def _oldest(pace: int) -> str:
    return (
        "SELECT * FROM (SELECT next_fetch AS first FROM schedule"
        f" WHERE is_active = 1 AND pace = {pace}"
        " AND feed_id NOT IN (SELECT value FROM json_each(?))"
        " ORDER BY next_fetch LIMIT 1)"
    ).replace("?", "?1")


_FIRSTS = " UNION ALL ".join(map(_first, range(PACES)))
_ORDER = "lateness DESC, next_fetch, feed_id"


@lru_cache(64)
def _due(places: frozenset[Pace]) -> str:
    """The ranges are materialized: otherwise each is sorted on its own, to be merged,
    which takes thirty times as long when nothing is due."""
    ranges = " UNION ALL ".join(_range(pace, pace in places) for pace in range(PACES))
    return (
        f"WITH ranges AS MATERIALIZED ({ranges})"
        " SELECT f.id, CASE f.fetch_url WHEN '' THEN f.url ELSE f.fetch_url END,"
        " s.next_fetch, s.pace FROM (SELECT feed_id, next_fetch, pace,"
        " (:now - next_fetch) * 1.0 / (1 << pace) AS lateness"
        f" FROM ranges ORDER BY {_ORDER} LIMIT :limit) s"
        f" CROSS JOIN feeds f ON f.id = s.feed_id ORDER BY {_ORDER}"
    )


def select_due(
    now: datetime, after: PlaceByPace, limit: int
) -> tuple[str, Mapping[str, int]]:
    """The query for a page of due feeds, after each pace's place, and its
    parameters."""
    parameters = {"now": to_milliseconds(now), "limit": limit}
    for pace, (at, feed_id) in after.items():
        parameters |= {f"at_{pace}": to_milliseconds(at), f"feed_{pace}": feed_id}
    return _due(frozenset(after)), parameters


NEXT_DUE = f"(SELECT min(first) FROM ({_FIRSTS}))"
"""The earliest next fetch of an active feed."""

_OLDEST = " UNION ALL ".join(map(_oldest, range(PACES)))
OLDEST_DUE = f"(SELECT min(first) FROM ({_OLDEST}))"
"""The earliest next fetch of active feeds that are not in a list of ids, which is the
first parameter."""

DEFER = Assignments(
    "UPDATE schedule SET next_fetch = asked.value FROM json_each(?) asked"
    " WHERE feed_id = CAST(asked.key AS INTEGER)"
)
"""Sets the next fetch of feeds, in milliseconds."""


_OVERDUE = """
FROM schedule s JOIN feed_hot f ON f.feed_id = s.feed_id
WHERE s.is_active = 1 AND s.next_fetch < :now AND f.polling <> x''
"""
SPREAD = f"""
UPDATE schedule SET next_fetch = :now + CAST(
    1000 * min(overdue.period, :window) * overdue.share AS INTEGER)
FROM (
    SELECT s.feed_id,
        coalesce(json_extract(CAST(f.polling AS TEXT), '$.period'), 0) AS period,
        (row_number() OVER (ORDER BY s.feed_id) * 2654435769 % 4294967296)
            / 4294967296.0 AS share
    {_OVERDUE}
) overdue WHERE overdue.feed_id = schedule.feed_id
"""
"""Spreads overdue feeds. ``share`` is the fraction of a multiple of the golden ratio;
these fractions are evenly spread."""


def spread_overdue(
    now: int, longest: float, per_second: float, connection: sqlite3.Connection
) -> int:
    ((count,),) = connection.execute(
        f"SELECT count(*) {_OVERDUE}", {"now": now}
    ).fetchall()
    window = min(longest, count / per_second)
    connection.execute(SPREAD, {"now": now, "window": window})
    return int(count)


def _hold_hosts(
    rows: Sequence[tuple[str, int]], now: int, connection: sqlite3.Connection
) -> None:
    connection.execute("DELETE FROM host_holds WHERE until <= ?", (now,))
    connection.executemany(
        "INSERT INTO host_holds VALUES (?, ?) ON CONFLICT (host)"
        " DO UPDATE SET until = max(until, excluded.until)",
        rows,
    )


def defer_all(assigned: str, connection: sqlite3.Connection) -> None:
    connection.execute(DEFER, (assigned,))


# --- the store ---

FIRST_MAINTENANCE = 600_000
"""Milliseconds from a feed's addition to its first maintenance: by then it has
entries."""

_GET = "SELECT * FROM stored_feeds WHERE id = ?"
_SEVERAL = "SELECT v.* FROM json_each(?) i CROSS JOIN stored_feeds v ON v.id = i.value"
_READABLE_OF_RESOURCE = " AND " + may_read("?3")
_READABLE = (
    "SELECT a.viewer, f.id FROM (SELECT json_extract(value, '$[0]') AS viewer,"
    " json_extract(value, '$[1]') AS feed_id FROM json_each(?)) a"
    f" CROSS JOIN feeds f ON f.id = a.feed_id WHERE {may_read('a.viewer')}"
)
_POSTINGS = """
WITH RECURSIVE spread (number, step) AS (
    SELECT 0, max(1.0, 1.0 * (SELECT max(id) FROM feeds) / ?1)
    UNION ALL
    SELECT number + 1, step FROM spread WHERE number + 1 < ?1
)
SELECT f.polling FROM spread CROSS JOIN feeds f
 ON f.id = (SELECT min(id) FROM feeds
  WHERE id > CAST(number * step AS INTEGER)
  AND id <= CAST((number + 1) * step AS INTEGER)
  AND state NOT IN ('removed', 'track', 'events') AND polling <> x'')
"""
"""Picks the first feed of each of so many equal ranges of ids."""


class SqliteFeeds:
    def __init__(
        self,
        writer: Writer,
        readers: Readers,
        box: SecretBox,
        control: SqliteControl,
    ) -> None:
        self._control = control
        self._writer = writer
        self._readers = readers
        self._box = box

    async def add(self, feed: NewFeed, now: datetime) -> tuple[StoredFeed, bool]:
        encrypted = encrypt_credentials(feed.credentials, self._box)
        unit = partial(_add, feed, encrypted, self._box, to_milliseconds(now))
        row, is_new = await self._writer.submit(unit)
        return read_feed(row), is_new

    async def edit(
        self, feed_id: FeedId, change: FeedChange, reason: str, now: datetime
    ) -> tuple[StoredFeed, int]:
        given = change.credentials
        is_none = given == Credentials()
        encrypted = "" if is_none else encrypt_credentials(given, self._box)
        parameters = {
            "id": feed_id,
            "private": change.private,
            "category": change.category,
            "own_period": change.own_period,
            "sent": None if given is None else encrypted,
        }
        moving = None if change.url is None else partial(_move, feed_id, change.url)
        ending = partial(_shut_out, feed_id, change, reason, to_milliseconds(now))
        row, ids = await self._writer.submit(
            partial(_edit, parameters, moving, ending, to_milliseconds(now)),
            then=lambda edited: self._tell_of_edit(feed_id, change, edited[1]),
        )
        if row is None:
            raise NotFound("feed", feed_id)
        return read_feed(row), len(ids)

    def _tell_of_edit(
        self, feed_id: FeedId, change: FeedChange, ended: Sequence[SubscriptionId]
    ) -> None:
        self._control.ended(ended)
        if change.shuts_out is not None:
            self._control.access_ended(feeds=[feed_id])

    async def get(self, feed_id: FeedId) -> StoredFeed | None:
        row = await self._readers.first(_GET, (feed_id,))
        return None if row is None else read_feed(row)

    async def several(self, ids: Collection[FeedId]) -> dict[FeedId, StoredFeed]:
        rows = await self._readers.all(_SEVERAL, (pack_ids(ids),))
        return {feed.id: feed for feed in map(read_feed, rows)}

    async def find(self, topic: str) -> StoredFeed | None:
        return await self._likeliest("", *resource_keys(topic))

    async def find_open(self, topic: str) -> StoredFeed | None:
        return await self._likeliest(WITHOUT_CREDENTIALS, *resource_keys(topic))

    async def find_readable(
        self, topic: str, viewer: AccountId | None
    ) -> StoredFeed | None:
        keys = resource_keys(topic)
        return await self._likeliest(_READABLE_OF_RESOURCE, *keys, viewer)

    async def _likeliest(self, where: str, *parameters: object) -> StoredFeed | None:
        of_resource = OF_RESOURCE.format(where=where)
        row = await self._readers.first(f"SELECT v.*{of_resource} LIMIT 1", parameters)
        return None if row is None else read_feed(row)

    async def parts(self, page: str, limit: int) -> list[StoredFeed]:
        rows = await self._readers.all(
            "SELECT v.* FROM feeds f JOIN stored_feeds v ON v.id = f.id"
            " WHERE f.page_hash = ? AND f.page_hash <> x'' AND f.state <> 'removed'"
            " ORDER BY f.id LIMIT ?",
            (hash_resource(page), limit),
        )
        return [read_feed(row) for row in rows]

    async def readable(
        self, asked: Collection[tuple[AccountId | None, FeedId]]
    ) -> frozenset[tuple[AccountId | None, FeedId]]:
        pairs = msgspec.json.encode(list(asked)).decode()
        rows = await self._readers.all(_READABLE, (pairs,))
        return frozenset((viewer, FeedId(feed_id)) for viewer, feed_id in rows)

    async def page(
        self, *, after: FeedId, limit: int, state: FeedState | None = None
    ) -> list[StoredFeed]:
        if state is None:
            rows = await self._readers.all(
                "SELECT * FROM stored_feeds"
                " WHERE state NOT IN ('removed', 'track', 'events')"
                " AND id > ? ORDER BY id LIMIT ?",
                (after, limit),
            )
        else:
            rows = await self._readers.all(
                "SELECT * FROM stored_feeds WHERE state = ? AND id > ?"
                " ORDER BY id LIMIT ?",
                (state, after, limit),
            )
        return [read_feed(row) for row in rows]

    async def due(
        self,
        now: datetime,
        *,
        after: PlaceByPace,
        limit: int,
    ) -> list[DueFeed]:
        rows = await self._readers.all(*select_due(now, after, limit))
        return [read_due(row) for row in rows]

    async def next_due(self) -> datetime | None:
        row = await self._readers.first(f"SELECT {NEXT_DUE}")
        return from_milliseconds_or_none(row[0] if row else None)

    def defer(self, moves: Sequence[tuple[FeedId, datetime]]) -> Awaitable[None]:
        if len(moves) == 1:
            ((feed_id, at),) = moves
            return self._writer.execute(DEFER, (feed_id, to_milliseconds(at)))
        encoded = assigned((feed_id, to_milliseconds(at)) for feed_id, at in moves)
        return self._writer.submit(partial(defer_all, encoded), is_single=True)

    async def hold_hosts(
        self, holds: Sequence[tuple[str, datetime]], now: datetime
    ) -> None:
        rows = [(host, to_milliseconds(until)) for host, until in holds]
        unit = partial(_hold_hosts, rows, to_milliseconds(now))
        await self._writer.submit(unit, is_single=True)

    async def held_hosts(self, now: datetime) -> list[tuple[str, datetime]]:
        rows = await self._readers.all(
            "SELECT host, until FROM host_holds WHERE until > ? ORDER BY host",
            (to_milliseconds(now),),
        )
        return [(host, from_milliseconds(until)) for host, until in rows]

    async def spread(
        self, now: datetime, *, longest: timedelta, per_second: float
    ) -> int:
        seconds = longest.total_seconds()
        unit = partial(spread_overdue, to_milliseconds(now), seconds, per_second)
        return await self._writer.submit(unit)

    async def targets(self, ids: Sequence[FeedId]) -> list[FetchTarget]:
        rows = await self._readers.all(
            "SELECT f.*, s.seen, p.slices, i.inventory, e.feed_id,"
            " g.maintained_at, g.popularity, g.porn_rank, g.is_stale,"
            f" {PUSH}"
            " FROM json_each(?) asked"
            " CROSS JOIN stored_feeds f ON f.id = asked.value"
            " LEFT JOIN seen_sets s ON s.feed_id = f.id"
            " LEFT JOIN slices p ON p.feed_id = f.id"
            " LEFT JOIN inventories i ON i.feed_id = f.id"
            " LEFT JOIN awaited_errors e ON e.feed_id = f.id"
            " LEFT JOIN standings g ON g.feed_id = f.id"
            " LEFT JOIN pushes u ON u.feed_id = f.id"
            " WHERE f.state NOT IN ('removed', 'track', 'events') ORDER BY asked.key",
            (pack_ids(ids),),
        )
        return [read_target(row, self._box) for row in rows]

    async def polls(self, feed_id: FeedId) -> list[Poll]:
        row = await self._readers.first(POLLS, (feed_id,))
        return unpack_polls(b"".join(row)) if row else []

    async def last_failures(self, ids: Sequence[FeedId]) -> dict[FeedId, Poll]:
        rows = await self._readers.all(POLLS_OF_MANY, (pack_ids(ids),))
        return last_failures({FeedId(id): polls for id, polls in rows})

    async def postings(self, limit: int) -> list[Posting]:
        rows = await self._readers.all(_POSTINGS, (limit,))
        postings = (read_posting(polling) for (polling,) in rows)
        return [posting for posting in postings if posting.habits]

    async def hidden(self, ids: Sequence[FeedId]) -> HiddenFeeds:
        rows = await self._readers.all(
            "SELECT asked.value, coalesce(f.state = 'removed', TRUE)"
            " FROM json_each(?) asked LEFT JOIN feeds f ON f.id = asked.value"
            " WHERE f.id IS NULL OR f.state = 'removed' OR f.private",
            (pack_ids(ids),),
        )
        removed = frozenset(FeedId(each) for each, is_removed in rows if is_removed)
        return HiddenFeeds(
            removed=removed,
            private=frozenset(FeedId(each) for each, _ in rows) - removed,
        )

    async def set_state(
        self,
        feed_id: FeedId,
        state: FeedState,
        now: datetime,
        *,
        next_fetch: datetime | None = None,
    ) -> StoredFeed:
        parameters = {
            "id": feed_id,
            "state": state,
            "now": to_milliseconds(now),
            "next_fetch": to_milliseconds_or_none(next_fetch),
        }
        row, _ = await self._writer.submit(
            partial(_set_state, parameters),
            then=lambda changed: self._tell_of_turned(feed_id, state, changed[1]),
        )
        if row is None:
            raise NotFound("feed", feed_id)
        return read_feed(row)

    def _tell_of_turned(
        self, feed_id: FeedId, state: FeedState, was_query: bool
    ) -> None:
        if was_query:
            self._control.went([feed_id])
        if state is FeedState.REMOVED:
            self._control.access_ended(feeds=[feed_id])

    async def set_publish_secret(self, feed_id: FeedId, secret: str) -> None:
        await self._writer.execute(
            "UPDATE feeds SET publish_secret = ? WHERE id = ?",
            (self._box.encrypt(secret), feed_id),
        )

    async def publish_secret(self, feed_id: FeedId) -> str:
        row = await self._readers.first(
            "SELECT publish_secret FROM feeds WHERE id = ?", (feed_id,)
        )
        return self._box.decrypt(row[0]) if row else ""

    async def set_subscription_callback(self, feed_id: FeedId, url: str) -> None:
        await self._writer.execute(
            "UPDATE feeds SET subscription_callback = ? WHERE id = ?", (url, feed_id)
        )

    async def subscription_callback(self, feed_id: FeedId) -> str:
        row = await self._readers.first(
            "SELECT subscription_callback FROM feeds WHERE id = ?", (feed_id,)
        )
        return row[0] if row else ""

    async def purge_removed(self, before: datetime, limit: int) -> int:
        earliest = to_milliseconds(before)
        rows = await self._readers.all(
            "SELECT id FROM feeds WHERE state = 'removed' AND removed_at < ?"
            " ORDER BY removed_at LIMIT ?",
            (earliest, limit),
        )
        for (feed_id,) in rows:
            unit = partial(purge_removed_feed, earliest, feed_id, ROWS_PURGED)
            while not await self._writer.submit(unit):
                pass
        return len(rows)


# --- units of work ---


def _add(
    feed: NewFeed,
    encrypted: str,
    box: SecretBox,
    now: int,
    connection: sqlite3.Connection,
) -> tuple[Row, bool]:
    known = feed_id = find_known(feed, box, connection)
    if known is None:
        feed_id = _insert(feed, encrypted, now, connection)
    else:
        _add_again(known, feed, encrypted, now, connection)
    row: Row = connection.execute(_GET, (feed_id,)).fetchone()
    return row, known is None


def _insert(
    feed: NewFeed, encrypted: str, now: int, connection: sqlite3.Connection
) -> int | None:
    feed_id = connection.execute(
        "INSERT INTO feeds (url, state, private, section, title, format, created_at,"
        " fetch_url, credentials, polling, resource_hash,"
        " page_hash) VALUES (?, 'active', ?, ?, ?, '', ?, '', ?, x'', ?, ?)",
        (
            *(feed.url, feed.private, feed.category, feed.title, now, encrypted),
            *(hash_resource(feed.url), hash_page(feed.url)),
        ),
    ).lastrowid
    connection.execute(
        "INSERT INTO schedule VALUES (?, ?, 1, ?)", (feed_id, now, UNKNOWN_PACE)
    )
    connection.execute(
        "INSERT INTO standings (feed_id, due) VALUES (?, ?)",
        (feed_id, now + FIRST_MAINTENANCE),
    )
    if feed.title or feed.description:
        connection.execute(
            "INSERT INTO given_names VALUES (?, ?, ?)",
            (feed_id, feed.title, feed.description),
        )
    return feed_id


def _add_again(
    feed_id: int,
    feed: NewFeed,
    encrypted: str,
    now: int,
    connection: sqlite3.Connection,
) -> None:
    """Add a known feed again. ``next_fetch`` stays: this is no reason to fetch early. A
    removed feed keeps all it had, but counts as not fetched yet: it may have changed.
    """
    connection.execute(
        "UPDATE feeds SET state = 'active', turned_at = ?, version = version + 1"
        " WHERE id = ? AND state IN ('gone', 'dead')",
        (now, feed_id),
    )
    connection.execute(
        "UPDATE feed_hot SET polling ="
        " CAST(json_remove(CAST(polling AS TEXT), '$.last_fetch') AS BLOB)"
        " WHERE feed_id = ? AND polling <> x''"
        " AND EXISTS (SELECT 1 FROM feeds WHERE id = feed_id AND state = 'removed')",
        (feed_id,),
    )
    connection.execute(
        "UPDATE feeds SET private = :private OR credentials <> '' OR :sent <> '',"
        " section = CASE :category WHEN '' THEN section ELSE :category END,"
        " credentials = CASE :sent WHEN '' THEN credentials ELSE :sent END,"
        " state = 'active', turned_at = :now, removed_at = NULL,"
        " version = version + 1"
        " WHERE id = :id AND state = 'removed'",
        {
            "id": feed_id,
            "now": now,
            "private": feed.private,
            "category": feed.category,
            "sent": encrypted,
        },
    )


def _edit(
    parameters: Mapping[str, object],
    move: Callable[[int, sqlite3.Connection], None] | None,
    shut_out: Callable[[sqlite3.Connection], list[SubscriptionId]],
    now: int,
    connection: sqlite3.Connection,
) -> tuple[Row | None, list[SubscriptionId]]:
    """Edit a feed; returns its row, or None, and the subscriptions that have ended."""
    changed = connection.execute(
        "UPDATE feeds SET credentials = coalesce(:sent, credentials),"
        " private = coalesce(:private, private) OR coalesce(:sent, credentials) <> '',"
        " section = coalesce(:category, section),"
        " own_period = coalesce(:own_period, own_period), version = version + 1"
        " WHERE id = :id AND state <> 'removed'",
        parameters,
    )
    if not changed.rowcount:
        return None, []
    if move is not None:
        move(now, connection)
    ended = shut_out(connection)
    row: Row = connection.execute(_GET, (parameters["id"],)).fetchone()
    return row, ended


_OF_URL = (
    *("fetch_url", "redirect", "validators", "found_at", "body_hash"),
    *("gone_sightings", "missing_sightings", "missing_since"),
    *("retry_after", "fresh_until"),
)
"""Fields of a polling state that are true of one URL only."""
_HOT_OF_URL = ", ".join(f"'$.{each}'" for each in _OF_URL if each in HOT_FIELDS)
_COLD_OF_URL = ", ".join(f"'$.{each}'" for each in _OF_URL if each in COLD_FIELDS)


def _move(feed_id: int, url: str, now: int, connection: sqlite3.Connection) -> None:
    """Give a feed another URL, at which it is due. The former URL still leads to it."""
    parameters = {
        "id": feed_id,
        "url": url,
        "resource": hash_resource(url),
        "page": hash_page(url),
        "now": now,
    }
    connection.execute(
        "INSERT INTO topics (url, feed_id) SELECT url, id FROM feeds"
        " WHERE id = :id AND url <> :url ON CONFLICT (url) DO NOTHING",
        parameters,
    )
    connection.execute(
        "UPDATE feeds SET url = :url, resource_hash = :resource, page_hash = :page,"
        " fetch_url = '', polling = iif(polling <> x'',"
        f"  CAST(json_remove(CAST(polling AS TEXT), {_COLD_OF_URL}) AS BLOB), polling),"
        " turned_at = iif(state IN ('gone', 'dead'), :now, turned_at),"
        " state = iif(state IN ('gone', 'dead'), 'active', state) WHERE id = :id",
        parameters,
    )
    connection.execute(
        "UPDATE feed_hot SET polling ="
        f" CAST(json_remove(CAST(polling AS TEXT), {_HOT_OF_URL}) AS BLOB)"
        " WHERE feed_id = :id AND polling <> x''",
        parameters,
    )
    connection.execute(
        "UPDATE schedule SET next_fetch = :now WHERE feed_id = :id", parameters
    )


def _shut_out(
    feed_id: int,
    change: FeedChange,
    reason: str,
    now: int,
    connection: sqlite3.Connection,
) -> list[SubscriptionId]:
    if change.shuts_out is None:
        return []
    return end_of_feed(feed_id, reason, now, NO_LIMIT, change.shuts_out, connection)


def _set_state(
    parameters: dict[str, object], connection: sqlite3.Connection
) -> tuple[Row | None, bool]:
    """Set a feed's state; returns its row, and whether it ended a track query."""
    ended = connection.execute(
        "SELECT 1 FROM feeds WHERE id = :id AND state = 'track' AND :state <> 'track'",
        parameters,
    ).fetchone()
    connection.execute(
        "UPDATE feeds SET state = :state, version = version + 1,"
        " turned_at = iif(state = :state, turned_at, :now),"
        " condition_since = iif(state = 'paused' AND :state = 'active'"
        "  AND condition <> 'failing', :now, condition_since),"
        " removed_at = CASE :state WHEN 'removed' THEN coalesce(removed_at, :now) END"
        " WHERE id = :id",
        parameters,
    )
    connection.execute(
        "UPDATE schedule SET next_fetch = coalesce(:next_fetch, next_fetch)"
        " WHERE feed_id = :id",
        parameters,
    )
    row: Row | None = connection.execute(_GET, (parameters["id"],)).fetchone()
    return row, ended is not None
