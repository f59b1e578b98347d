"""`storage.contract.EntryStore` on SQLite, and when feeds' entries were posted."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path

from storage.errors import DatabaseUnusable
from storage.records import EntryId, EntryPlace, EntrySource, FeedId, StoredEntry
from storage.sqlite.columns import (
    HASHES,
    from_milliseconds,
    pack_hashes,
    pack_ids,
    to_milliseconds,
)
from storage.sqlite.connection_threads import read_only
from storage.sqlite.feed_statistics import read_statistics
from storage.sqlite.readers import Readers, Row
from storage.sqlite.rows import ENTRY, hash_key, read_entry, read_feed

NEWEST = (
    f"SELECT {ENTRY}"
    " FROM ({chosen}) chosen CROSS JOIN entries e ON e.id = chosen.id"
    " ORDER BY e.sorted_at DESC, e.id"
)
OF_FEEDS = (
    "SELECT p.id{columns} FROM json_each(:feeds) f CROSS JOIN entries p ON p.id IN ("
    "SELECT id FROM entries WHERE feed_id = f.value AND deleted = 0{limits}"
    " ORDER BY sorted_at DESC, id LIMIT :limit)"
)
"""For each feed at most a page of entries is read, in the order of its index."""
ALSO = (
    " UNION SELECT id, sorted_at FROM entries"
    " WHERE id IN (SELECT value FROM json_each(:also)) AND deleted = 0"
    " AND NOT unlisted{limits}"
)
_PAGE = " ORDER BY sorted_at DESC, id LIMIT :limit"
_PAGE_OF_FEEDS = " ORDER BY p.sorted_at DESC, p.id LIMIT :limit"
BEFORE = " AND sorted_at <= :before AND (sorted_at < :before OR id > :before_id)"
AFTER = " AND sorted_at >= :after AND (sorted_at > :after OR id < :after_id)"
LISTED = (
    " AND NOT unlisted"
    " AND NOT EXISTS (SELECT 1 FROM feeds WHERE id = feed_id AND unlisted)"
)
_PLACE_OF_KEY = " ".join(
    (
        "SELECT sorted_at, id FROM entries",
        "WHERE feed_id IN (SELECT value FROM json_each(?)) AND key_hash IN",
        HASHES,
        "ORDER BY sorted_at DESC, id LIMIT 1",
    )
)
_PLACE = "SELECT sorted_at, id FROM entries WHERE id = ?"


class SqliteEntries:
    def __init__(self, readers: Readers) -> None:
        self._readers = readers

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
        sql, parameters = select_newest(
            feeds, limit, before, after, also, listed_only=listed_only
        )
        return [read_entry(row) for row in await self._readers.all(sql, parameters)]

    async def place(
        self, feeds: Sequence[FeedId], keys: Sequence[str]
    ) -> EntryPlace | None:
        row = await self._readers.first(
            _PLACE_OF_KEY,
            (pack_ids(feeds), *pack_hashes([hash_key(key) for key in keys])),
        )
        return _read_place(row)

    async def place_of(self, entry_id: EntryId) -> EntryPlace | None:
        return _read_place(await self._readers.first(_PLACE, (entry_id,)))

    async def sources(self, feeds: Sequence[FeedId]) -> list[EntrySource]:
        rows = await self._readers.all(
            "SELECT f.*, h.head, g.maintained_at, g.popularity, g.porn_rank,"
            " g.is_stale FROM json_each(?) asked"
            " CROSS JOIN stored_feeds f ON f.id = asked.value"
            " LEFT JOIN feed_heads h ON h.feed_id = f.id"
            " LEFT JOIN standings g ON g.feed_id = f.id ORDER BY asked.key",
            (pack_ids(feeds),),
        )
        return [
            EntrySource(
                feed=read_feed(row), head=row[-5], statistics=read_statistics(row[-4:])
            )
            for row in rows
        ]


def select_newest(
    feeds: Sequence[FeedId],
    limit: int,
    before: EntryPlace | None = None,
    after: EntryPlace | None = None,
    also: Sequence[EntryId] = (),
    *,
    listed_only: bool = False,
) -> tuple[str, dict[str, object]]:
    """The statement for a page, and its parameters."""
    limits = LISTED if listed_only else ""
    parameters: dict[str, object] = {"feeds": pack_ids(feeds), "limit": limit}
    more: dict[str, object] = {}
    if before is not None:
        limits += BEFORE
        more |= {"before": to_milliseconds(before.at), "before_id": before.id}
    if after is not None:
        limits += AFTER
        more |= {"after": to_milliseconds(after.at), "after_id": after.id}
    if also:
        more["also"] = pack_ids(also)
        either = (OF_FEEDS + ALSO).format(columns=", p.sorted_at", limits=limits)
        chosen = f"SELECT id FROM ({either}){_PAGE}"
    else:
        chosen = OF_FEEDS.format(columns="", limits=limits) + _PAGE_OF_FEEDS
    return NEWEST.format(chosen=chosen), {**parameters, **more}


def _read_place(row: Row | None) -> EntryPlace | None:
    return None if row is None else EntryPlace(from_milliseconds(row[0]), row[1])


_TIMES = (
    "SELECT f.url, e.sorted_at / 1000.0 FROM feeds f JOIN entries e ON e.feed_id = f.id"
    " WHERE f.state <> 'removed' AND e.deleted = 0 ORDER BY f.id, e.sorted_at"
)


def read_times(path: Path) -> Mapping[str, tuple[float, ...]]:
    """Unix seconds by feed URL, in order: an entry's own date, or its first sighting.

    Raises `DatabaseUnusable`.
    """
    try:
        with closing(sqlite3.connect(read_only(path), uri=True)) as connection:
            rows = connection.execute(_TIMES)
            return {
                url: tuple(at for _, at in of_feed)
                for url, of_feed in groupby(rows, key=lambda row: str(row[0]))
            }
    except sqlite3.Error as error:
        raise DatabaseUnusable(str(path), str(error)) from error
