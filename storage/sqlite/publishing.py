"""`storage.interface.PublicStore` on SQLite."""

from __future__ import annotations

from datetime import datetime

from storage.records import EntryId, FeedId, ListedEntry, PublicFeed
from storage.sqlite.log_rows import ENTRY, read_entry
from storage.sqlite.readers import Readers, Row
from storage.sqlite.times import from_milliseconds, to_milliseconds

_FEEDS = (
    "SELECT f.id, f.url, f.title, coalesce(g.description, ''), f.section,"
    " f.created_at, h.head"
    " FROM feeds f LEFT JOIN feed_heads h ON h.feed_id = f.id"
    " LEFT JOIN given_names g ON g.feed_id = f.id"
    " WHERE NOT f.private AND f.state <> 'removed'"
)
_ENTRIES = (
    f"SELECT e.sorted_at, {ENTRY} FROM entries e"
    " WHERE feed_id = :feed_id AND deleted = 0"
)
_ORDERED = " ORDER BY sorted_at DESC, id LIMIT :limit"
_FOLLOWING = " AND sorted_at <= :dated AND (sorted_at < :dated OR id > :id)"


class SqlitePublic:
    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    async def feeds(self, *, after: FeedId, limit: int) -> list[PublicFeed]:
        rows = await self._readers.all(
            f"{_FEEDS} AND f.id > ? ORDER BY f.id LIMIT ?", (after, limit)
        )
        return [_read_feed(row) for row in rows]

    async def feed(self, feed_id: FeedId) -> PublicFeed | None:
        row = await self._readers.first(f"{_FEEDS} AND f.id = ?", (feed_id,))
        return None if row is None else _read_feed(row)

    async def entries(
        self, feed_id: FeedId, *, before: tuple[datetime, EntryId] | None, limit: int
    ) -> list[ListedEntry]:
        parameters: dict[str, object] = {"feed_id": feed_id, "limit": limit}
        if before is None:
            rows = await self._readers.all(_ENTRIES + _ORDERED, parameters)
        else:
            dated, entry_id = before
            parameters |= {"dated": to_milliseconds(dated), "id": entry_id}
            rows = await self._readers.all(_ENTRIES + _FOLLOWING + _ORDERED, parameters)
        return [
            ListedEntry(entry=read_entry(row[1:]), dated=from_milliseconds(row[0]))
            for row in rows
        ]


def _read_feed(row: Row) -> PublicFeed:
    feed_id, url, title, description, section, created_at, head = row
    return PublicFeed(
        id=FeedId(feed_id),
        url=url,
        title=title,
        description=description,
        section=section,
        created_at=from_milliseconds(created_at),
        head=head,
    )
