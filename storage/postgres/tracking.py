"""`storage.contract.TrackStore` on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from storage.postgres.connections import Connections, Row
from storage.postgres.control import PostgresControl
from storage.postgres.rows import unpack_references
from storage.records import (
    NOBODY,
    AccountId,
    FeedId,
    StoredFeed,
    TrackMatch,
    TrackQuery,
)
from storage.sqlite.columns import from_milliseconds
from storage.sqlite.rows import hash_key, read_feed
from storage.sqlite.tracking import TRACK_SCHEME, WANTED_AGAIN

_JUST_WANTED: Final = (
    "SELECT v.* FROM feeds f JOIN track_queries q ON q.feed_id = f.id"
    " JOIN stored_feeds v ON v.id = f.id"
    " WHERE f.resource_hash = %s AND f.url = %s AND f.state = 'track'"
    " AND q.account_id = %s AND q.wanted_at > %s"
)
_ADD: Final = "SELECT (a.feed).*, a.version FROM add_query(%s, %s, %s, %s, %s) a"
_MATCHES: Final = """
SELECT r.at, r.source_id, r.refs FROM unnest(%s::bigint[]) q (id),
    LATERAL (SELECT * FROM kept_records k WHERE k.feed_id = q.id
        ORDER BY k.position DESC LIMIT %s) r
JOIN feeds f ON f.id = r.source_id AND NOT f.unlisted
WHERE may_read(viewer_of(q.id), f) ORDER BY r.position DESC
"""
_SAMPLE: Final = (
    "SELECT e.body FROM (SELECT id FROM entries ORDER BY id DESC LIMIT %s) latest"
    " JOIN entries e ON e.id = latest.id JOIN feeds f ON f.id = e.feed_id"
    " WHERE NOT f.private AND f.state <> 'removed' AND NOT e.deleted"
    " AND length(e.body) <= %s ORDER BY e.id DESC"
)


class PostgresTracking:
    def __init__(self, connections: Connections, control: PostgresControl) -> None:
        self._connections = connections
        self._control = control

    async def add(
        self, name: str, query: str, now: datetime, owner: AccountId = NOBODY
    ) -> StoredFeed:
        url = TRACK_SCHEME + name
        known = await self._connections.first(
            _JUST_WANTED, (hash_key(url), url, owner, now - WANTED_AGAIN)
        )
        if known is not None:
            return read_feed(known)
        rows = await self._connections.write(
            _ADD,
            (hash_key(url), url, query, owner, now),
            then=lambda added: self._tell_of_new(query, added[0]),
        )
        return read_feed(rows[0])

    def _tell_of_new(self, query: str, row: Row) -> None:
        if version := row[-1]:
            self._control.came(version, TrackQuery(FeedId(row[0]), query))

    async def find(self, name: str) -> StoredFeed | None:
        url = TRACK_SCHEME + name
        row = await self._connections.first(
            "SELECT v.* FROM feeds f JOIN stored_feeds v ON v.id = f.id"
            " WHERE f.resource_hash = %s AND f.url = %s"
            " ORDER BY f.state = 'removed', f.id LIMIT 1",
            (hash_key(url), url),
        )
        return None if row is None else read_feed(row)

    async def version(self) -> int:
        row = await self._connections.first("SELECT queries FROM log_head")
        return row[0] if row else 0

    async def page(self, *, after: FeedId, limit: int) -> list[TrackQuery]:
        rows = await self._connections.all(
            "SELECT q.feed_id, q.query FROM feeds f"
            " JOIN track_queries q ON q.feed_id = f.id"
            " WHERE f.state = 'track' AND f.id > %s ORDER BY f.id LIMIT %s",
            (after, limit),
        )
        return [TrackQuery(FeedId(feed_id), query) for feed_id, query in rows]

    async def sample(self, limit: int, most_bytes: int) -> list[bytes]:
        rows = await self._connections.all(_SAMPLE, (limit, most_bytes))
        return [body for (body,) in rows]

    async def matches(self, feeds: Sequence[FeedId], records: int) -> list[TrackMatch]:
        rows = await self._connections.all(_MATCHES, (list(feeds), records))
        return [
            TrackMatch(ref.entry_id, FeedId(source), from_milliseconds(at))
            for at, source, refs in rows
            for ref in unpack_references(refs)
        ]

    async def retire(
        self,
        unwanted_since: datetime,
        listened: Sequence[FeedId],
        now: datetime,
        limit: int,
    ) -> int:
        ((went,),) = await self._connections.write(
            "SELECT retire_queries(%s, %s::bigint[], %s, %s)",
            (unwanted_since, list(listened), now, limit),
            then=lambda rows: self._control.went(rows[0][0]),
        )
        return len(went)
