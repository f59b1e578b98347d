"""`storage.contract.SiteStore` on SQLite, and what a commit writes of a site."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from storage.records import FeedId, SiteTally, SiteWrite, StoredSitePage
from storage.sqlite.columns import HASHES, pack_hashes
from storage.sqlite.readers import Readers, Row
from storage.sqlite.rows import hash_key

_PAGE = "key, reference, content, stamp, walk, day, changes, deleted"
_PUT = (
    f"INSERT INTO site_pages (feed_id, key_hash, {_PAGE})"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (feed_id, key_hash) DO UPDATE"
    " SET reference = excluded.reference, content = excluded.content,"
    " stamp = excluded.stamp, walk = excluded.walk, day = excluded.day,"
    " changes = excluded.changes, deleted = excluded.deleted"
)


class SqliteSites:
    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    async def state(self, feed_id: FeedId) -> bytes:
        row = await self._readers.first(
            "SELECT state FROM site_states WHERE feed_id = ?", (feed_id,)
        )
        return row[0] if row else b""

    async def known(self, feed_id: FeedId, keys: Sequence[str]) -> list[StoredSitePage]:
        rows = await self._readers.all(
            f"SELECT {_PAGE} FROM site_pages"
            f" WHERE feed_id = ? AND key_hash IN {HASHES}",
            (feed_id, *pack_hashes([hash_key(key) for key in keys])),
        )
        return [read_site_page(row) for row in rows]

    async def unlisted(
        self, feed_id: FeedId, walk: int, *, after: str, limit: int
    ) -> list[StoredSitePage]:
        rows = await self._readers.all(
            f"SELECT {_PAGE} FROM site_pages"
            " WHERE feed_id = ? AND key_hash > ? AND walk < ? AND NOT deleted"
            " ORDER BY key_hash LIMIT ?",
            (feed_id, hash_key(after) if after else b"", walk, limit),
        )
        return [read_site_page(row) for row in rows]

    async def tally(self, feed_id: FeedId, walk: int) -> SiteTally:
        row = await self._readers.first(
            "SELECT count(*), coalesce(sum(walk < ?), 0) FROM site_pages"
            " WHERE feed_id = ? AND NOT deleted",
            (walk, feed_id),
        )
        pages, unlisted = row or (0, 0)
        return SiteTally(pages=pages, unlisted=unlisted)


def put_site(feed_id: int, site: SiteWrite, connection: sqlite3.Connection) -> None:
    """Store what a fetch found of a site, in the unit of work that commits it."""
    connection.execute(
        "INSERT INTO site_states VALUES (?, ?)"
        " ON CONFLICT (feed_id) DO UPDATE SET state = excluded.state",
        (feed_id, site.state),
    )
    connection.executemany(
        "UPDATE site_pages SET walk = ? WHERE feed_id = ? AND key_hash = ?",
        [(site.walk, feed_id, hash_key(key)) for key in site.listed],
    )
    connection.executemany(_PUT, [_page_row(feed_id, page) for page in site.pages])


def _page_row(feed_id: int, page: StoredSitePage) -> tuple[object, ...]:
    return (
        *(feed_id, hash_key(page.key), page.key, page.reference),
        *(page.content, page.stamp, page.walk, page.day, page.changes),
        page.is_deleted,
    )


def read_site_page(row: Row) -> StoredSitePage:
    key, reference, content, stamp, walk, day, changes, deleted = row
    return StoredSitePage(
        key=key,
        reference=reference,
        content=content,
        stamp=stamp,
        walk=walk,
        day=day,
        changes=changes,
        is_deleted=bool(deleted),
    )
