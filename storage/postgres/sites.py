"""`storage.contract.SiteStore` on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from storage.postgres.connections import Connections
from storage.records import FeedId, SiteTally, StoredSitePage
from storage.sqlite.rows import hash_key
from storage.sqlite.sites import read_site_page

_PAGE: Final = "key, reference, content, stamp, walk, day, changes, deleted"


class PostgresSites:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def state(self, feed_id: FeedId) -> bytes:
        row = await self._connections.first(
            "SELECT state FROM site_states WHERE feed_id = %s", (feed_id,)
        )
        return row[0] if row else b""

    async def known(self, feed_id: FeedId, keys: Sequence[str]) -> list[StoredSitePage]:
        rows = await self._connections.all(
            f"SELECT {_PAGE} FROM site_pages"
            " WHERE feed_id = %s AND key_hash = ANY(%s::bytea[])",
            (feed_id, [hash_key(key) for key in keys]),
        )
        return [read_site_page(row) for row in rows]

    async def unlisted(
        self, feed_id: FeedId, walk: int, *, after: str, limit: int
    ) -> list[StoredSitePage]:
        rows = await self._connections.all(
            f"SELECT {_PAGE} FROM site_pages WHERE feed_id = %s AND key_hash > %s"
            " AND walk < %s AND NOT deleted ORDER BY key_hash LIMIT %s",
            (feed_id, hash_key(after) if after else b"", walk, limit),
        )
        return [read_site_page(row) for row in rows]

    async def tally(self, feed_id: FeedId, walk: int) -> SiteTally:
        row = await self._connections.first(
            "SELECT count(*), count(*) FILTER (WHERE walk < %s) FROM site_pages"
            " WHERE feed_id = %s AND NOT deleted",
            (walk, feed_id),
        )
        pages, unlisted = row or (0, 0)
        return SiteTally(pages=pages, unlisted=unlisted)
