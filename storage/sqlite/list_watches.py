"""`storage.contract.ListWatchStore` on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

import msgspec

from storage.errors import NotFound
from storage.records import (
    FeedId,
    ListWatch,
    ListWatchId,
    NewListWatch,
    Validators,
    WatchedFate,
    WatchedFeed,
)
from storage.sqlite.columns import (
    from_milliseconds,
    from_milliseconds_or_none,
    to_milliseconds,
    to_milliseconds_or_none,
)
from storage.sqlite.feed_access import hash_resource
from storage.sqlite.readers import Readers, Row
from storage.sqlite.writer import Writer

_NUMBERS: Final = (
    *("failures", "is_doubted", "feeds", "refused"),
    *("added", "removed", "kept"),
)
_WRITTEN: Final = ("due", "read_at", "changed_at", "error", "validators", *_NUMBERS)
_WATCHES: Final = (
    f"SELECT id, url, category, private, created_at, {', '.join(_WRITTEN)}"
    " FROM list_watches"
)
_SAVE: Final = (
    f"UPDATE list_watches SET {', '.join(f'{each} = :{each}' for each in _WRITTEN)}"
    " WHERE id = :id"
)
_PUT_FEED: Final = (
    "INSERT INTO watched_feeds"
    " SELECT ?1, ?2, ?3, ?4, ?5, ?6 FROM list_watches WHERE id = ?1"
    " ON CONFLICT (watch_id, resource_hash) DO UPDATE SET url = excluded.url,"
    " category = excluded.category, fate = excluded.fate, feed_id = excluded.feed_id"
)
_DROP_FEED: Final = "DELETE FROM watched_feeds WHERE watch_id = ? AND resource_hash = ?"
_validators = msgspec.json.Decoder(Validators)


class SqliteListWatches:
    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def add(self, new: NewListWatch, now: datetime) -> tuple[ListWatch, bool]:
        parameters = {
            "url": new.url,
            "category": new.category,
            "private": new.private,
            "now": to_milliseconds(now),
        }
        row, is_new = await self._writer.submit(partial(_add, parameters))
        return read_watch(row), is_new

    async def get(self, watch_id: ListWatchId) -> ListWatch | None:
        row = await self._readers.first(f"{_WATCHES} WHERE id = ?", (watch_id,))
        return None if row is None else read_watch(row)

    async def page(self, *, after: ListWatchId, limit: int) -> list[ListWatch]:
        rows = await self._readers.all(
            f"{_WATCHES} WHERE id > ? ORDER BY id LIMIT ?", (after, limit)
        )
        return [read_watch(row) for row in rows]

    async def due(self, now: datetime, limit: int) -> list[ListWatch]:
        rows = await self._readers.all(
            f"{_WATCHES} WHERE due <= ? ORDER BY due, id LIMIT ?",
            (to_milliseconds(now), limit),
        )
        return [read_watch(row) for row in rows]

    async def save(self, watch: ListWatch) -> None:
        parameters = {
            "id": watch.id,
            "due": to_milliseconds(watch.due),
            "read_at": to_milliseconds_or_none(watch.read_at),
            "changed_at": to_milliseconds_or_none(watch.changed_at),
            "error": watch.error,
            "validators": pack_validators(watch.validators),
            **{name: int(getattr(watch, name)) for name in _NUMBERS},
        }
        await self._writer.submit(partial(_save, parameters), is_single=True)

    async def remove(self, watch_id: ListWatchId) -> None:
        if not await self._writer.submit(partial(_remove, watch_id)):
            raise NotFound("watched list", watch_id)

    async def feeds(
        self, watch_id: ListWatchId, *, after: str, limit: int
    ) -> list[WatchedFeed]:
        rows = await self._readers.all(
            "SELECT url, category, fate, feed_id FROM watched_feeds"
            " WHERE watch_id = ? AND resource_hash > ?"
            " ORDER BY resource_hash LIMIT ?",
            (watch_id, hash_resource(after) if after else b"", limit),
        )
        return [_read_feed(*row) for row in rows]

    async def put_feeds(
        self, watch_id: ListWatchId, feeds: Sequence[WatchedFeed]
    ) -> None:
        rows = [
            (
                *(watch_id, hash_resource(each.url), each.url, each.category),
                *(each.fate, each.feed_id),
            )
            for each in feeds
        ]
        await self._writer.submit(partial(_write_all, _PUT_FEED, rows))

    async def drop_feeds(self, watch_id: ListWatchId, urls: Sequence[str]) -> None:
        rows = [(watch_id, hash_resource(url)) for url in urls]
        await self._writer.submit(partial(_write_all, _DROP_FEED, rows))

    async def holders(self, feed_id: FeedId) -> list[tuple[ListWatchId, WatchedFeed]]:
        rows = await self._readers.all(
            "SELECT watch_id, url, category, fate, feed_id FROM watched_feeds"
            " WHERE feed_id = ? ORDER BY watch_id, resource_hash",
            (feed_id,),
        )
        return [(ListWatchId(watch_id), _read_feed(*row)) for watch_id, *row in rows]


def read_watch(row: Row) -> ListWatch:
    watch_id, url, category, private, created_at, due, read_at, changed_at, *rest = row
    error, validators, failures, is_doubted, feeds, refused, *changed = rest
    added, removed, kept = changed
    return ListWatch(
        id=watch_id,
        url=url,
        category=category,
        private=bool(private),
        created_at=from_milliseconds(created_at),
        due=from_milliseconds(due),
        read_at=from_milliseconds_or_none(read_at),
        changed_at=from_milliseconds_or_none(changed_at),
        error=error,
        validators=_validators.decode(validators) if validators else None,
        failures=failures,
        is_doubted=bool(is_doubted),
        feeds=feeds,
        refused=refused,
        added=added,
        removed=removed,
        kept=kept,
    )


def pack_validators(validators: Validators | None) -> str:
    return "" if validators is None else msgspec.json.encode(validators).decode()


def _read_feed(
    url: str, category: str, fate: str, feed_id: FeedId | None
) -> WatchedFeed:
    return WatchedFeed(
        url=url, category=category, fate=WatchedFate(fate), feed_id=feed_id
    )


# --- units of work ---


def _add(
    parameters: Mapping[str, object], connection: sqlite3.Connection
) -> tuple[Row, bool]:
    find = f"{_WATCHES} WHERE url = :url"
    known: Row | None = connection.execute(find, parameters).fetchone()
    if known is not None:
        return known, False
    connection.execute(
        "INSERT INTO list_watches (url, category, private, created_at, due)"
        " VALUES (:url, :category, :private, :now, :now)",
        parameters,
    )
    row: Row = connection.execute(find, parameters).fetchone()
    return row, True


def _save(parameters: Mapping[str, object], connection: sqlite3.Connection) -> None:
    connection.execute(_SAVE, parameters)


def _remove(watch_id: ListWatchId, connection: sqlite3.Connection) -> bool:
    connection.execute("DELETE FROM watched_feeds WHERE watch_id = ?", (watch_id,))
    removed = connection.execute("DELETE FROM list_watches WHERE id = ?", (watch_id,))
    return bool(removed.rowcount)


def _write_all(
    sql: str, rows: Sequence[Sequence[object]], connection: sqlite3.Connection
) -> None:
    connection.executemany(sql, rows)
