"""What nothing in the file takes is given back to the disk, little by little."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from hub.runtime.clock import SystemClock
from hub.search.index_follower import SearchIndex
from storage.sqlite import SqliteStorage, find_damage, open_database
from storage.sqlite.disk_usage import LEAST_FREE_PAGES, index_bytes
from tests.support.storage_scene import Scene

PAGES = 3_000


def fill(path: Path) -> None:
    """And empty it again, so that pages are free."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE filler (id INTEGER PRIMARY KEY, content)")
        connection.execute(
            "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1"
            " FROM numbers WHERE n < ?) INSERT INTO filler SELECT n, zeroblob(4000)"
            " FROM numbers",
            (PAGES,),
        )
        connection.execute("DROP TABLE filler")


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[SqliteStorage]:
    storage = await open_database(tmp_path / "hub.db")
    yield storage
    await storage.close()


async def test_free_pages_are_given_back_but_for_some_that_are_used_next(
    storage: SqliteStorage, tmp_path: Path
) -> None:
    fill(tmp_path / "hub.db")
    before = (await storage.status()).size_bytes

    assert await storage.give_back(100) == 100
    given = 100
    while page := await storage.give_back(500):
        given += page

    after = (await storage.status()).size_bytes
    assert given <= (before - after) // 4096 <= given + 5, "and what told of them"
    assert PAGES - LEAST_FREE_PAGES <= given <= PAGES + 20
    assert await storage.find_damage() == ()
    await storage.close()
    assert (tmp_path / "hub.db").stat().st_size == after


async def test_how_much_is_for_what_is_estimated_from_a_few_rows(
    storage: SqliteStorage, tmp_path: Path
) -> None:
    scene = Scene(storage)
    feed = await scene.add_feed()
    for number in range(40):
        await scene.publish(feed, *(f"{number}/{each}" * 50 for each in range(25)))
    await SearchIndex(storage, SystemClock()).catch_up()

    usage = await storage.usage()

    with closing(sqlite3.connect(tmp_path / "hub.db")) as connection:
        ((entries, searched),) = connection.execute(
            "SELECT (SELECT sum(length(key) + length(body)) FROM entries),"
            " (SELECT sum(length(text)) FROM searched)"
        ).fetchall()
    assert 0.8 < usage["entries"] / (entries + 1_000 * 60) < 1.25
    assert usage["search"] > searched
    status = await storage.status()
    assert sum(usage.values()) == pytest.approx(status.size_bytes, rel=0.3)


def test_the_size_of_an_index_of_words_is_read_from_its_record() -> None:
    segments = bytes([2, 3, 9, 0, 1, 1, 1, 5, 0, 2, 2, 1, 0x81, 0x00, 3, 7, 8])
    assert index_bytes(bytes(4) + segments) == (5 + 128 + 2) * 4_096
    assert index_bytes(bytes(4) + b"\x02") == 0


async def test_a_file_of_an_older_version_keeps_its_free_pages(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA auto_vacuum = NONE")
        connection.execute("PRAGMA journal_mode = WAL")
    storage = await open_database(path)
    fill(path)

    assert await storage.give_back(100) == 0

    await storage.close()
    assert find_damage(path) == ()
