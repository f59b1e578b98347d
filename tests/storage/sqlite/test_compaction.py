"""A database is written anew whole or not at all, and stays the same database."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from storage.errors import DatabaseLocked, DatabaseUnusable
from storage.sqlite import compact_database, open_database
from tests.support.killed import killed_at_each_step
from tests.support.storage_scene import Scene

RECORDS = 40
INCREMENTAL = 2


async def make(path: Path) -> str:
    """A database of an older version, which cannot give back what is freed in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA auto_vacuum = NONE")
        connection.execute("PRAGMA journal_mode = WAL")
    storage = await open_database(path)
    scene = Scene(storage)
    feed = await scene.add_feed()
    await scene.subscribe(feed, secret="shared")
    for number in range(RECORDS):
        await scene.publish(feed, f"key {number}")
    epoch = (await storage.status()).epoch
    await storage.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE filler (content)")
        connection.execute("INSERT INTO filler VALUES (zeroblob(1000000))")
        connection.execute("DROP TABLE filler")
    return epoch


async def check(path: Path, epoch: str) -> None:
    storage = await open_database(path)
    try:
        records = await storage.log.records(after=0, limit=99)
        [subscription] = await storage.subscriptions.page(after=0, limit=9)
        assert (await storage.status()).epoch == epoch
    finally:
        await storage.close()
    assert [each.position for each in records] == [*range(1, RECORDS + 1)]
    assert subscription.secret == "shared"


def auto_vacuum(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        (found,) = connection.execute("PRAGMA auto_vacuum").fetchone()
    return int(found)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "hub.db"


def test_freed_room_is_given_back_and_will_be_from_then_on(path: Path) -> None:
    epoch = asyncio.run(make(path))
    assert auto_vacuum(path) != INCREMENTAL
    told = []

    before, after = compact_database(path, lambda done, total: told.append(done))

    assert before - after > 900_000
    assert path.stat().st_size == after
    assert path.stat().st_mode & 0o777 == 0o600
    assert 0 <= after - told[-1] <= 8_192  # with a map of its pages
    assert auto_vacuum(path) == INCREMENTAL
    asyncio.run(check(path, epoch))


def test_killed_at_any_step_it_is_the_old_file_or_the_new(
    path: Path, tmp_path: Path
) -> None:
    """Also with the WAL of a hub that crashed."""
    kept = tmp_path / "kept"
    epoch = asyncio.run(make(kept / "hub.db"))
    with closing(sqlite3.connect(kept / "hub.db", isolation_level=None)) as connection:
        connection.execute("UPDATE meta SET checked_at = 4711")
        shutil.copytree(kept, tmp_path / "crashed")

    def prepare() -> None:
        shutil.rmtree(path.parent, ignore_errors=True)
        shutil.copytree(tmp_path / "crashed", path.parent)
        assert path.with_name("hub.db-wal").stat().st_size

    kinds = []
    for _ in killed_at_each_step(
        prepare, lambda progress: compact_database(path, progress)
    ):
        asyncio.run(check(path, epoch))
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("SELECT checked_at FROM meta").fetchone()[0] > 999
        kinds.append(auto_vacuum(path))
        assert not [*path.parent.glob("*.compacting*")]
    assert kinds == sorted(kinds)
    assert set(kinds) == {0, INCREMENTAL}


async def test_a_database_in_use_stays(path: Path) -> None:
    storage = await open_database(path)

    with pytest.raises(DatabaseLocked):
        compact_database(path)

    await storage.close()


def test_a_database_that_another_program_reads_stays(path: Path) -> None:
    asyncio.run(make(path))
    with closing(sqlite3.connect(path, isolation_level=None)) as shell:
        shell.execute("BEGIN")
        shell.execute("SELECT * FROM meta").fetchall()

        with pytest.raises(DatabaseUnusable, match="another program has it open"):
            compact_database(path)

    assert [each.name for each in path.parent.glob("*.compacting*")] == []
