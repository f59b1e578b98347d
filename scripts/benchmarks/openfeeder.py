"""What readers get by OpenFeeder, over a million pages.

The floor is the same with ten thousand: no answer may cost more for what it leaves out.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from hub.clock import SystemClock
from hub.services.openfeeder import OpenFeederService
from protocols.model import Entry, Feed, Link, Text
from protocols.openfeeder.serving.parameters import (
    IndexAsked,
    PageAsked,
    Request,
    SyncAsked,
)
from protocols.openfeeder.serving.times import SyncPoint
from protocols.urls import normal_url
from scripts.benchmarks.growth import Ask, measure_growth
from scripts.benchmarks.measuring import Finding
from storage.interface import Storage
from storage.packing import pack
from storage.sqlite import open_database
from storage.sqlite.database import SqliteStorage
from storage.sqlite.feed_choice import hash_resource
from storage.sqlite.log_rows import hash_key
from storage.sqlite.page_counts import SHIFTS

OPERATIONS: Final = 30
CHANGED: Final = 100
"""Pages that have changed since a reader was there."""
NAMES: Final = (
    "page of the index",
    "page",
    f"answer of {CHANGED} changes",
    f"window of {CHANGED} changes",
)
FEEDS: Final = 100
START = datetime(2026, 1, 1, tzinfo=UTC)
_APART = 60_000
"""Milliseconds between two entries."""
_ROWS = 50_000


async def measure(directory: Path, *, is_quick: bool) -> list[Finding]:
    """CPU of a page of the index anywhere, of one page, and of what has changed."""
    return await measure_growth(
        directory,
        "openfeeder",
        {name: partial(_asking, name) for name in NAMES},
        "pages",
        is_quick=is_quick,
        opened=_open,
        operations=OPERATIONS,
    )


def _asking(name: str, storage: Storage, count: int) -> Ask:
    """Each answer by a service of its own, which has no page at hand yet."""

    async def ask(number: int) -> None:
        service = OpenFeederService(storage, SystemClock(), "https://hub.example")
        served = await service.answer(_request(name, count, number))
        assert served.results  # noqa: S101 - or nothing was measured

    return ask


def _request(name: str, count: int, number: int) -> Request:
    match name:
        case "page of the index":
            return IndexAsked(page=1 + number // 10)
        case "page":
            return PageAsked(url=_url(number))
    is_window = name.startswith("window")
    first = number % (count - CHANGED) if is_window else count - CHANGED
    since = START + timedelta(milliseconds=first * _APART)
    until = since + timedelta(milliseconds=(CHANGED - 1) * _APART)
    point = SyncPoint(moment=since)
    return SyncAsked(since=point, until=until if is_window else None)


async def _open(path: Path, count: int) -> SqliteStorage:
    """A database with so many pages, written as the engine's own rows."""
    await (await open_database(path)).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            " PRAGMA cache_size = -524288; BEGIN"
        )
        found = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        )
        for (name,) in found.fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        _put_feeds(connection)
        _put_pages(connection, count)
        for level, shift in enumerate(SHIFTS):
            connection.execute(
                "INSERT INTO page_counts SELECT ?, dated >> ?, count(*) FROM pages"
                " GROUP BY 2",
                (level, shift),
            )
        connection.execute("COMMIT")
    return await open_database(path)


def _put_feeds(connection: sqlite3.Connection) -> None:
    head = pack(Feed(title="A feed", language="en"))
    for each in range(1, FEEDS + 1):
        url = f"https://{each}.example/feed"
        connection.execute(
            "INSERT INTO feeds (id, url, state, private, section, title, format,"
            " created_at, fetch_url, credentials, polling, resource_hash)"
            " VALUES (?, ?, 'active', 0, '', 'A feed', 'atom', 0, '', '', x'7b7d', ?)",
            (each, normal_url(url), hash_resource(url)),
        )
        connection.execute("INSERT INTO feed_heads VALUES (?, ?)", (each, head))


def _put_pages(connection: sqlite3.Connection, count: int) -> None:
    text = "<p>" + "some words of an entry. " * 15 + "</p>"
    entry = Entry(
        key="k",
        id="https://entries.example/1",
        title="An entry",
        content=Text(value=text * 3),
        links=(Link(href="https://entries.example/1"),),
    )
    body, start = pack(entry), int(START.timestamp() * 1_000)
    entries = (
        (
            *(each + 1, 1 + each % FEEDS, hash_key(str(each)), str(each)),
            *(start + each * _APART, body),
        )
        for each in range(count)
    )
    _insert(
        connection,
        "INSERT INTO entries (id, feed_id, key_hash, key, revision, deleted,"
        " sorted_at, last_position, body) VALUES (?, ?, ?, ?, 1, 0, ?, 0, ?)",
        entries,
    )
    pages = (
        (
            *(each + 1, hash_key(_url(each)), _url(each), each + 1),
            *((start + each * _APART) // 1_000, each + 1),
            *(start + each * _APART,) * 3,
        )
        for each in range(count)
    )
    _insert(
        connection,
        "INSERT INTO pages (id, url_hash, url, entry_id, revision, modified, change,"
        " changed_at, dated, shown_at) VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?)",
        pages,
    )


def _insert(
    connection: sqlite3.Connection, sql: str, rows: Iterator[tuple[object, ...]]
) -> None:
    while part := list(islice(rows, _ROWS)):
        connection.executemany(sql, part)


def _url(number: int) -> str:
    return f"https://entries.example/{number}"
