"""Databases with very many pages, written as the engine's own rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final

from protocols.model import Entry, Feed, Link, Text
from storage.packing import pack
from storage.records import NewFeed
from storage.sqlite import open_database
from storage.sqlite.operations import SqliteStorage
from storage.sqlite.rows import hash_key
from storage.sqlite.shown_pages import SHIFTS

FEEDS: Final = 100
START: Final = datetime(2024, 1, 1, tzinfo=UTC)
APART: Final = 60_000
"""Milliseconds between two entries; the millionth is of 2025."""
NO_CLAIM: Final = 3
"""The owner of pages that no feed comes near (`hub.publishing.page_visibility`)."""
_ROWS = 50_000


def page_url(number: int) -> str:
    return f"https://entries.example/{number}"


async def open_pages(path: Path, count: int) -> SqliteStorage:
    """A database with so many pages: entry N, of feed 1 + N % 100, has the key N."""
    storage = await open_database(path)
    await _put_feeds(storage)
    await storage.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            " PRAGMA cache_size = -524288; BEGIN"
        )
        triggers = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        head = pack(Feed(title="A feed", language="en"))
        connection.execute("INSERT INTO feed_heads SELECT id, ? FROM feeds", (head,))
        _put_pages(connection, count)
        for level, shift in enumerate(SHIFTS):
            connection.execute(
                "INSERT INTO page_counts SELECT ?, dated >> ?, count(*) FROM pages"
                " GROUP BY 2",
                (level, shift),
            )
        for _, sql in triggers:
            connection.execute(sql)
        connection.execute("COMMIT")
    return await open_database(path)


async def _put_feeds(storage: SqliteStorage) -> None:
    for number in range(1, FEEDS + 1):
        new = NewFeed(url=f"https://{number}.example/feed")
        await storage.feeds.add(new, START)


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
            *(start + each * APART, body),
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
            *(each + 1, hash_key(page_url(each)), page_url(each), each + 1),
            *((start + each * APART) // 1_000, each + 1),
            *(start + each * APART,) * 3,
            *((start + each * APART) // 1_000, "en", NO_CLAIM),
        )
        for each in range(count)
    )
    _insert(
        connection,
        "INSERT INTO pages (id, url_hash, url, entry_id, revision, modified, change,"
        " changed_at, dated, shown_at, published, language, owner)"
        " VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?)",
        pages,
    )

    shown = (
        (
            *(each + 1, each + 1, "", start + each * APART, 1),
            *((start + each * APART) // 1_000, "en", True, NO_CLAIM),
        )
        for each in range(count)
    )
    _insert(
        connection,
        "INSERT INTO page_entries (entry_id, page_id, section, dated, revision, stated,"
        " language, inherits_language, owner) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        shown,
    )


def _insert(
    connection: sqlite3.Connection, sql: str, rows: Iterator[tuple[object, ...]]
) -> None:
    while part := list(islice(rows, _ROWS)):
        connection.executemany(sql, part)
