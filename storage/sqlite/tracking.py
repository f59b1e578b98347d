"""`storage.contract.TrackStore` on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from storage.records import (
    NOBODY,
    UNKNOWN_PACE,
    AccountId,
    FeedId,
    StoredFeed,
    TrackMatch,
    TrackQuery,
)
from storage.sqlite.columns import from_milliseconds, pack_ids, to_milliseconds
from storage.sqlite.control import SqliteControl
from storage.sqlite.feed_access import OWNER, may_read
from storage.sqlite.readers import Readers, Row
from storage.sqlite.rows import hash_key, read_feed, unpack_refs
from storage.sqlite.writer import Writer

TRACK_SCHEME = "track:"
"""The scheme of the URL of a query's feed, which is never requested."""

WANTED_AGAIN = timedelta(hours=1)
"""Asking again for a query within this time writes nothing."""

_JUST_WANTED = (
    "SELECT v.* FROM feeds f CROSS JOIN track_queries q ON q.feed_id = f.id"
    " CROSS JOIN stored_feeds v ON v.id = f.id"
    " WHERE f.resource_hash = ? AND f.url = ? AND f.state = 'track'"
    " AND q.account_id = ? AND q.wanted_at > ?"
)
_GET = "SELECT * FROM stored_feeds WHERE id = ?"
MATCHES = (
    "SELECT r.at, r.source_id, r.refs FROM json_each(?) q"
    " CROSS JOIN records r ON r.position IN (SELECT position FROM records"
    "  WHERE feed_id = q.value ORDER BY position DESC LIMIT ?)"
    " CROSS JOIN feeds f ON f.id = r.source_id AND NOT f.unlisted"
    f"  AND {may_read(OWNER.format('q.value'))}"
    " ORDER BY r.position DESC"
)
SAMPLE = (
    "SELECT e.body FROM (SELECT id FROM entries ORDER BY id DESC LIMIT ?) latest"
    " CROSS JOIN entries e ON e.id = latest.id"
    " CROSS JOIN feeds f ON f.id = e.feed_id"
    " WHERE NOT f.private AND f.state <> 'removed' AND NOT e.deleted"
    " AND length(e.body) <= ?"
)
_FIND = (
    "SELECT f.id FROM feeds f CROSS JOIN track_queries q ON q.feed_id = f.id"
    " WHERE f.resource_hash = ? AND f.url = ? AND q.account_id = ?"
)
_ADOPT = f"""
UPDATE track_queries SET account_id = ?3 WHERE account_id = {NOBODY} AND feed_id IN (
    SELECT f.id FROM feeds f WHERE f.resource_hash = ?1 AND f.url = ?2
    AND NOT EXISTS (SELECT 1 FROM subscriptions s WHERE s.feed_id = f.id
        AND s.account_id <> ?3 AND s.state IN ('pending', 'active', 'ending')))
"""
"""A query that belongs to nobody becomes the asking account's, unless others subscribe
to it."""


class SqliteTracking:
    def __init__(
        self, writer: Writer, readers: Readers, control: SqliteControl
    ) -> None:
        self._writer = writer
        self._readers = readers
        self._control = control

    async def add(
        self, name: str, query: str, now: datetime, owner: AccountId = NOBODY
    ) -> StoredFeed:
        url = TRACK_SCHEME + name
        since = to_milliseconds(now - WANTED_AGAIN)
        known = await self._readers.first(
            _JUST_WANTED, (hash_key(url), url, owner, since)
        )
        if known is not None:
            return read_feed(known)
        row, _ = await self._writer.submit(
            partial(_add, url, query, owner, to_milliseconds(now)),
            then=lambda added: self._tell_of_new(query, *added),
        )
        return read_feed(row)

    def _tell_of_new(self, query: str, row: Row, version: int) -> None:
        if version:
            self._control.came(version, TrackQuery(FeedId(row[0]), query))

    async def find(self, name: str) -> StoredFeed | None:
        url = TRACK_SCHEME + name
        row = await self._readers.first(
            "SELECT v.* FROM feeds f JOIN stored_feeds v ON v.id = f.id"
            " WHERE f.resource_hash = ? AND f.url = ?"
            " ORDER BY f.state = 'removed', f.id LIMIT 1",
            (hash_key(url), url),
        )
        return None if row is None else read_feed(row)

    async def version(self) -> int:
        row = await self._readers.first("SELECT queries FROM meta")
        return row[0] if row else 0

    async def page(self, *, after: FeedId, limit: int) -> list[TrackQuery]:
        rows = await self._readers.all(
            "SELECT q.feed_id, q.query FROM feeds f"
            " CROSS JOIN track_queries q ON q.feed_id = f.id"
            " WHERE f.state = 'track' AND f.id > ? ORDER BY f.id LIMIT ?",
            (after, limit),
        )
        return [TrackQuery(FeedId(feed_id), query) for feed_id, query in rows]

    async def sample(self, limit: int, most_bytes: int) -> list[bytes]:
        rows = await self._readers.all(SAMPLE, (limit, most_bytes))
        return [body for (body,) in rows]

    async def matches(self, feeds: Sequence[FeedId], records: int) -> list[TrackMatch]:
        rows = await self._readers.all(MATCHES, (pack_ids(feeds), records))
        return [
            TrackMatch(ref.entry_id, FeedId(source), from_milliseconds(at))
            for at, source, refs in rows
            for ref in unpack_refs(refs)
        ]

    async def retire(
        self,
        unwanted_since: datetime,
        listened: Sequence[FeedId],
        now: datetime,
        limit: int,
    ) -> int:
        unit = partial(
            _retire,
            to_milliseconds(unwanted_since),
            pack_ids(listened),
            to_milliseconds(now),
            limit,
        )
        went = await self._writer.submit(unit, then=self._control.went)
        return len(went)


# --- units of work ---


def _add(
    url: str, query: str, owner: int, now: int, connection: sqlite3.Connection
) -> tuple[Row, int]:
    """Add a query; returns its feed's row, and the version of the queries that it
    began, 0 if it was there already."""
    own = hash_key(url), url, owner
    found = connection.execute(_FIND, own).fetchone()
    if found is None and connection.execute(_ADOPT, own).rowcount:
        found = connection.execute(_FIND, own).fetchone()
    feed_id = found[0] if found else _insert(url, query, owner, now, connection)
    connection.execute(
        "UPDATE track_queries SET wanted_at = ? WHERE feed_id = ?", (now, feed_id)
    )
    came = not found or _has_returned(feed_id, connection)
    version = 0
    if came:
        ((version,),) = connection.execute(
            "UPDATE meta SET queries = queries + 1 RETURNING queries"
        ).fetchall()
    row: Row = connection.execute(_GET, (feed_id,)).fetchone()
    return row, version


def _insert(
    url: str, query: str, owner: int, now: int, connection: sqlite3.Connection
) -> int:
    """Insert the feed of a query.

    It is private: who may see its records is decided as for private topics.
    """
    feed_id = insert_unpolled(url, "track", now, connection)
    connection.execute(
        "INSERT INTO track_queries VALUES (?, ?, ?, ?)", (feed_id, query, now, owner)
    )
    return feed_id


def insert_unpolled(
    url: str, state: str, now: int, connection: sqlite3.Connection
) -> int:
    """Insert a feed that stands for a topic without one: private, and never due."""
    ((feed_id,),) = connection.execute(
        "INSERT INTO feeds (url, state, private, section, title, format, created_at,"
        " fetch_url, credentials, polling, resource_hash)"
        " VALUES (?, ?, TRUE, '', '', '', ?, '', '', x'', ?) RETURNING id",
        (url, state, now, hash_key(url)),
    ).fetchall()
    connection.execute(
        "INSERT INTO schedule VALUES (?, ?, FALSE, ?)", (feed_id, now, UNKNOWN_PACE)
    )
    return int(feed_id)


def _has_returned(feed_id: int, connection: sqlite3.Connection) -> bool:
    changed = connection.execute(
        "UPDATE feeds SET state = 'track', removed_at = NULL"
        " WHERE id = ? AND state <> 'track'",
        (feed_id,),
    )
    return bool(changed.rowcount)


def _retire(
    unwanted_since: int,
    listened: str,
    now: int,
    limit: int,
    connection: sqlite3.Connection,
) -> Sequence[FeedId]:
    connection.execute(
        "UPDATE track_queries SET wanted_at = ?"
        " WHERE feed_id IN (SELECT value FROM json_each(?))",
        (now, listened),
    )
    found = connection.execute(
        "SELECT f.id FROM feeds f CROSS JOIN track_queries q ON q.feed_id = f.id"
        " CROSS JOIN feed_audience a ON a.feed_id = f.id"
        " WHERE f.state = 'track' AND a.subscribers = 0 AND q.wanted_at < :since"
        " AND NOT EXISTS (SELECT 1 FROM subscriptions s WHERE s.feed_id = f.id"
        "  AND (s.state IN ('pending', 'active') OR s.ended_at >= :since))"
        " ORDER BY f.id LIMIT :limit",
        {"since": unwanted_since, "limit": limit},
    ).fetchall()
    ids = [FeedId(feed_id) for (feed_id,) in found]
    connection.execute(
        "UPDATE feeds SET state = 'removed', removed_at = ?"
        " WHERE id IN (SELECT value FROM json_each(?))",
        (now, pack_ids(ids)),
    )
    return ids
