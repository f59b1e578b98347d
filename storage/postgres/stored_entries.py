"""`storage.contract.EntryStore` on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from storage.postgres.connections import ASKED, Connections, Row
from storage.records import EntryId, EntryPlace, EntrySource, FeedId, StoredEntry
from storage.sqlite.columns import from_milliseconds
from storage.sqlite.feed_statistics import read_statistics
from storage.sqlite.rows import ENTRY, hash_key, read_entry, read_feed

_NEWEST: Final = (
    f"SELECT {ENTRY} FROM ({{chosen}} ORDER BY sorted_at DESC, id LIMIT %(limit)s) c"
    " JOIN entries e ON e.id = c.id ORDER BY e.sorted_at DESC, e.id"
)
_OF_FEEDS: Final = (
    "SELECT p.id, p.sorted_at FROM unnest(%(feeds)s::bigint[]) f (id),"
    " LATERAL (SELECT e.id, e.sorted_at FROM entries e WHERE e.feed_id = f.id"
    " AND NOT e.deleted{limits} ORDER BY e.sorted_at DESC, e.id LIMIT %(limit)s) p"
)
"""For each feed at most a page of entries is read, in the order of its index."""
_ALSO: Final = (
    " UNION SELECT e.id, e.sorted_at FROM entries e"
    " WHERE e.id = ANY(%(also)s::bigint[]) AND NOT e.deleted AND NOT e.unlisted{limits}"
)
_BEFORE: Final = (
    " AND e.sorted_at <= %(before)s"
    " AND (e.sorted_at < %(before)s OR e.id > %(before_id)s)"
)
_AFTER: Final = (
    " AND e.sorted_at >= %(after)s AND (e.sorted_at > %(after)s OR e.id < %(after_id)s)"
)
_SOURCES: Final = (
    "SELECT f.*, h.head, g.maintained_at, g.popularity, g.porn_rank, g.is_stale"
    f" FROM {ASKED}"
    " JOIN stored_feeds f ON f.id = asked.id"
    " LEFT JOIN feed_heads h ON h.feed_id = f.id"
    " LEFT JOIN feed_statistics g ON g.feed_id = f.id ORDER BY asked.place"
)
_LISTED: Final = (
    " AND NOT e.unlisted"
    " AND NOT EXISTS (SELECT 1 FROM feeds u WHERE u.id = e.feed_id AND u.unlisted)"
)


class PostgresEntries:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def newest(
        self,
        feeds: Sequence[FeedId],
        *,
        limit: int,
        before: EntryPlace | None = None,
        after: EntryPlace | None = None,
        also: Sequence[EntryId] = (),
        listed_only: bool = False,
    ) -> list[StoredEntry]:
        limits = _LISTED if listed_only else ""
        parameters: dict[str, object] = {"feeds": list(feeds), "limit": limit}
        if before is not None:
            limits += _BEFORE
            parameters |= {"before": before.at, "before_id": before.id}
        if after is not None:
            limits += _AFTER
            parameters |= {"after": after.at, "after_id": after.id}
        chosen = _OF_FEEDS
        if also:
            chosen += _ALSO
            parameters["also"] = list(also)
        sql = _NEWEST.format(chosen=chosen.format(limits=limits))
        return [read_entry(row) for row in await self._connections.all(sql, parameters)]

    async def place(
        self, feeds: Sequence[FeedId], keys: Sequence[str]
    ) -> EntryPlace | None:
        row = await self._connections.first(
            "SELECT sorted_at, id FROM entries WHERE feed_id = ANY(%s::bigint[])"
            " AND key_hash = ANY(%s::bytea[]) ORDER BY sorted_at DESC, id LIMIT 1",
            (list(feeds), [hash_key(key) for key in keys]),
        )
        return _read_place(row)

    async def place_of(self, entry_id: EntryId) -> EntryPlace | None:
        row = await self._connections.first(
            "SELECT sorted_at, id FROM entries WHERE id = %s", (entry_id,)
        )
        return _read_place(row)

    async def sources(self, feeds: Sequence[FeedId]) -> list[EntrySource]:
        rows = await self._connections.all(_SOURCES, (list(feeds),))
        return [
            EntrySource(
                feed=read_feed(row), head=row[-5], statistics=read_statistics(row[-4:])
            )
            for row in rows
        ]


def _read_place(row: Row | None) -> EntryPlace | None:
    return None if row is None else EntryPlace(from_milliseconds(row[0]), row[1])
