"""`storage.contract.ListWatchStore` on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from storage.errors import NotFound
from storage.postgres.connections import Connections
from storage.records import (
    FeedId,
    ListWatch,
    ListWatchId,
    NewListWatch,
    WatchedFate,
    WatchedFeed,
)
from storage.sqlite.feed_access import hash_resource
from storage.sqlite.list_watches import pack_validators, read_watch

_NUMBERS: Final = ("failures", "feeds", "refused", "added", "removed", "kept")
_WRITTEN: Final = (
    *("due", "read_at", "changed_at", "error", "validators", "failures"),
    *("is_doubted", "feeds", "refused", "added", "removed", "kept"),
)
_COLUMNS: Final = f"id, url, category, private, created_at, {', '.join(_WRITTEN)}"
_WATCHES: Final = f"SELECT {_COLUMNS} FROM list_watches"
_ADD: Final = f"""
WITH added AS (
    INSERT INTO list_watches (url, category, private, created_at, due)
    VALUES (%(url)s, %(category)s, %(private)s, %(now)s, %(now)s)
    ON CONFLICT (url) DO UPDATE SET url = excluded.url
    RETURNING {_COLUMNS}, xmax = 0
)
SELECT * FROM added
"""
"""``xmax`` is not 0 if the row existed and was locked for the update."""
_SAVE: Final = (
    f"UPDATE list_watches SET {', '.join(f'{each} = %({each})s' for each in _WRITTEN)}"
    " WHERE id = %(id)s"
)
_PUT_FEEDS: Final = """
INSERT INTO watched_feeds
SELECT w.id, f.* FROM list_watches w, unnest(%(hashes)s::bytea[], %(urls)s::text[],
    %(categories)s::text[], %(fates)s::text[], %(feeds)s::bigint[]) f
WHERE w.id = %(id)s
ON CONFLICT (watch_id, resource_hash) DO UPDATE SET url = excluded.url,
    category = excluded.category, fate = excluded.fate, feed_id = excluded.feed_id
"""
_REMOVE: Final = """
WITH feeds AS (DELETE FROM watched_feeds WHERE watch_id = %(id)s)
DELETE FROM list_watches WHERE id = %(id)s
"""


class PostgresListWatches:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def add(self, new: NewListWatch, now: datetime) -> tuple[ListWatch, bool]:
        parameters = {
            "url": new.url,
            "category": new.category,
            "private": new.private,
            "now": now,
        }
        ((*row, is_new),) = await self._connections.write(_ADD, parameters)
        return read_watch(tuple(row)), is_new

    async def get(self, watch_id: ListWatchId) -> ListWatch | None:
        row = await self._connections.first(f"{_WATCHES} WHERE id = %s", (watch_id,))
        return None if row is None else read_watch(row)

    async def page(self, *, after: ListWatchId, limit: int) -> list[ListWatch]:
        rows = await self._connections.all(
            f"{_WATCHES} WHERE id > %s ORDER BY id LIMIT %s", (after, limit)
        )
        return [read_watch(row) for row in rows]

    async def due(self, now: datetime, limit: int) -> list[ListWatch]:
        rows = await self._connections.all(
            f"{_WATCHES} WHERE due <= %s ORDER BY due, id LIMIT %s", (now, limit)
        )
        return [read_watch(row) for row in rows]

    async def save(self, watch: ListWatch) -> None:
        parameters = {
            "id": watch.id,
            "due": watch.due,
            "read_at": watch.read_at,
            "changed_at": watch.changed_at,
            "error": watch.error,
            "validators": pack_validators(watch.validators),
            "is_doubted": watch.is_doubted,
            **{name: getattr(watch, name) for name in _NUMBERS},
        }
        await self._connections.write(_SAVE, parameters)

    async def remove(self, watch_id: ListWatchId) -> None:
        if not await self._connections.change(_REMOVE, {"id": watch_id}):
            raise NotFound("watched list", watch_id)

    async def feeds(
        self, watch_id: ListWatchId, *, after: str, limit: int
    ) -> list[WatchedFeed]:
        rows = await self._connections.all(
            "SELECT url, category, fate, feed_id FROM watched_feeds"
            " WHERE watch_id = %s AND resource_hash > %s"
            " ORDER BY resource_hash LIMIT %s",
            (watch_id, hash_resource(after) if after else b"", limit),
        )
        return [_read_feed(*row) for row in rows]

    async def put_feeds(
        self, watch_id: ListWatchId, feeds: Sequence[WatchedFeed]
    ) -> None:
        different = {hash_resource(each.url): each for each in feeds}
        parameters = {
            "id": watch_id,
            "hashes": list(different),
            "urls": [each.url for each in different.values()],
            "categories": [each.category for each in different.values()],
            "fates": [each.fate.value for each in different.values()],
            "feeds": [each.feed_id for each in different.values()],
        }
        await self._connections.write(_PUT_FEEDS, parameters)

    async def drop_feeds(self, watch_id: ListWatchId, urls: Sequence[str]) -> None:
        await self._connections.write(
            "DELETE FROM watched_feeds"
            " WHERE watch_id = %s AND resource_hash = ANY(%s::bytea[])",
            (watch_id, [hash_resource(url) for url in urls]),
        )

    async def holders(self, feed_id: FeedId) -> list[tuple[ListWatchId, WatchedFeed]]:
        rows = await self._connections.all(
            "SELECT watch_id, url, category, fate, feed_id FROM watched_feeds"
            " WHERE feed_id = %s ORDER BY watch_id, resource_hash",
            (feed_id,),
        )
        return [(ListWatchId(watch_id), _read_feed(*row)) for watch_id, *row in rows]


def _read_feed(
    url: str, category: str, fate: str, feed_id: FeedId | None
) -> WatchedFeed:
    return WatchedFeed(
        url=url, category=category, fate=WatchedFate(fate), feed_id=feed_id
    )
