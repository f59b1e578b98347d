"""A disk that fails, as a whole hub sees it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from storage.errors import StorageError, StorageFull, WriteFailed
from storage.records import PACES
from storage.sqlite import SqliteStorage
from storage.sqlite.feeds import NEXT_DUE, OLDEST_DUE
from storage.sqlite.readers import Readers
from tests.support.documents import an_entry
from tests.support.new_database import open_new
from tests.support.storage_scene import START, Scene, fetch, noise, record, stored_at


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[SqliteStorage]:
    storage = await open_new(tmp_path / "hub.db")
    yield storage
    await storage.close()


async def limit_pages(storage: SqliteStorage, pages: int) -> None:
    """As a quota on the disk would."""

    def limit(connection: sqlite3.Connection) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages}")

    await storage._writer.submit(limit)


async def test_a_full_disk_is_an_error_until_space_returns(
    storage: SqliteStorage,
) -> None:
    feed = await Scene(storage).add_feed()
    large = fetch(
        feed,
        title="too much",
        entries=(an_entry("k", title=noise(4_000_000)),),
        records=(record("k"),),
    )
    await limit_pages(storage, 1)

    with pytest.raises(StorageFull):
        await storage.log.commit(large)

    assert "full" in storage.write_error()
    assert await storage.feeds.get(feed.id) == feed, "nothing of it is stored"
    assert (await storage.log.end()).position == 0
    await limit_pages(storage, 1_000_000)
    assert await stored_at(storage.log.commit(large)) == (1,)
    assert storage.write_error() == ""
    faults = storage.write_faults()
    assert faults.stretches == 1
    assert faults.count > 0
    assert "full" in faults.last
    await limit_pages(storage, 1)
    larger = replace(large, entries=(an_entry("l", title=noise(8_000_000)),))
    for _ in range(2):
        with pytest.raises(StorageFull):
            await storage.log.commit(larger)
    assert storage.write_faults().stretches == 2
    assert storage.write_faults().count >= faults.count + 2


@pytest.mark.parametrize("name", ["hub.db", "hub.db-wal"])
@pytest.mark.parametrize("is_replaced", [False, True])
async def test_a_file_that_is_removed_or_replaced_beneath_takes_no_writes(
    storage: SqliteStorage, tmp_path: Path, name: str, is_replaced: bool
) -> None:
    feed = await Scene(storage).add_feed()
    file, aside = tmp_path / name, tmp_path / "aside"
    file.rename(aside)
    if is_replaced:
        file.write_bytes(b"")

    with pytest.raises(WriteFailed, match="removed or replaced"):
        await storage.log.commit(fetch(feed, records=(record(),)))

    assert f": {name} was removed or replaced" in storage.write_error()
    assert await storage.log.records(after=0, limit=9) == []
    aside.rename(file)
    assert await stored_at(storage.log.commit(fetch(feed, records=(record(),)))) == (1,)
    assert storage.write_error() == ""


async def test_a_check_is_a_write_of_its_own(storage: SqliteStorage) -> None:
    await storage.check()

    assert storage.write_error() == ""
    await storage._writer.submit(lambda disk: disk.execute("PRAGMA query_only = ON"))
    with pytest.raises(StorageFull):
        await storage.check()
    assert storage.write_error()


async def test_a_reader_that_waits_at_the_end_is_let_go_when_a_commit_came(
    storage: SqliteStorage,
) -> None:
    feed = await Scene(storage).add_feed()
    committing = asyncio.create_task(
        storage.log.commit(fetch(feed, records=(record(),)))
    )
    await asyncio.sleep(0)
    committing.cancel()

    async with asyncio.timeout(60):
        assert await storage.log.wait(0, 30) == 1, "though its caller was cancelled"


async def test_a_read_that_fails_says_so_in_our_words(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    sqlite3.connect(path).close()
    path.touch()
    readers = await Readers.open(path)

    with pytest.raises(StorageError, match="no such table"):
        await readers.all("SELECT * FROM feeds")

    await readers.close()
    await readers.close()


async def test_whoever_reads_for_long_makes_the_wal_grow_until_the_end_of_it(
    storage: SqliteStorage, tmp_path: Path
) -> None:
    feed = await Scene(storage).add_feed()

    async def write(count: int) -> int:
        """About a megabyte each; how long the WAL is then."""
        for number in range(count):
            entries = (an_entry(f"{number}", title=noise(1_000_000)),)
            await storage.log.commit(fetch(feed, entries=entries))
        return (await storage.status()).wal_bytes

    undisturbed = await write(8)
    reader = sqlite3.connect(f"file:{tmp_path / 'hub.db'}?mode=ro", uri=True)
    with closing(reader):
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM entries").fetchall()
        held_up = await write(16)
        assert held_up > undisturbed + 10_000_000
        assert (await storage.log.end()).position == 0
        assert storage.write_error() == "", "slower to open after a crash, and no more"
    most = held_up + 2_000_000
    assert await write(16) < most, "written from its beginning again"


async def test_reads_at_once_share_a_few_connections(storage: SqliteStorage) -> None:
    feed = await Scene(storage).add_feed()

    async with asyncio.TaskGroup() as tasks:
        reads = [tasks.create_task(storage.feeds.get(feed.id)) for _ in range(50)]

    assert {each.result() for each in reads} == {feed}


async def test_a_page_of_due_feeds_is_a_range_of_an_index(
    storage: SqliteStorage,
) -> None:
    """Also from the place on where many are due at the same time."""
    feed = await Scene(storage).add_feed()
    statements: list[str] = []
    reader = storage._readers._connections[-1]
    await reader.set_trace_callback(statements.append)
    await storage.feeds.due(START, after={3: (START, feed.id)}, limit=9)
    await reader.set_trace_callback(None)

    plan = await storage._readers.all(f"EXPLAIN QUERY PLAN {statements[0]}")

    index = "SEARCH schedule USING COVERING INDEX schedule_due (is_active=? AND pace=?"
    ranges = [row[3].removeprefix(index) for row in plan if "schedule" in row[3]]
    assert sorted(ranges) == [
        *((PACES - 1) * [" AND next_fetch<?)"]),
        " AND next_fetch=? AND rowid>?)",
        " AND next_fetch>? AND next_fetch<?)",
    ]
    assert "SEARCH f USING INTEGER PRIMARY KEY (rowid=?)" in [row[3] for row in plan]


async def test_the_next_due_feed_is_the_first_of_an_index_for_each_pace(
    storage: SqliteStorage,
) -> None:
    plan = await storage._readers.all(f"EXPLAIN QUERY PLAN SELECT {NEXT_DUE}")
    others = await storage._readers.all(
        f"EXPLAIN QUERY PLAN SELECT {OLDEST_DUE}", ("[1]",)
    )

    for each in (plan, others):
        assert [row[3] for row in each if "schedule" in row[3]] == PACES * [
            "SEARCH schedule USING COVERING INDEX schedule_due (is_active=? AND pace=?)"
        ]
