"""A power cut leaves any part of what was being written: nothing acknowledged is lost.

What SQLite had flushed when it said that a commit was durable is the file up to that
moment. Whatever of the rest is there, in part, garbled or not at all, the database
opens with exactly the commits that were acknowledged by then, and is whole.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random
from shutil import copyfile

import pytest

from storage.errors import WriteFailed
from storage.records import Position
from storage.sqlite import SqliteStorage, open_database
from tests.support.documents import an_entry
from tests.support.failing_disk import failing_disk
from tests.support.storage_scene import Scene, fetch, noise, record

COMMITS = 6
CUTS = 12
SECTOR = 512  # bytes; what a disk writes whole


async def test_a_wal_cut_anywhere_has_every_commit_before_the_cut(
    tmp_path: Path,
) -> None:
    flushed = await write_and_crash(tmp_path / "hub.db")
    ends = [end + more for end in flushed for more in (-1, 0, 1)]
    anywhere = Random(1).sample(range(flushed[0], flushed[-1]), CUTS)
    for cut in sorted({*ends, *anywhere} - {flushed[0] - 1}):
        crashed = leave(tmp_path, f"cut-{cut}", cut)
        durable = sum(end <= cut for end in flushed)
        assert await commits_in(crashed) == durable


@pytest.mark.parametrize("seed", range(6))
async def test_what_was_not_yet_flushed_may_be_anything(
    tmp_path: Path, seed: int
) -> None:
    """Sectors of the last writes may be there in any order, or be of older ones."""
    random = Random(seed)
    flushed = await write_and_crash(tmp_path / "hub.db")
    durable = random.randint(1, COMMITS - 1)
    crashed = leave(tmp_path, "crashed", flushed[-1])
    wal = crashed.with_name("hub.db-wal")
    content = bytearray(wal.read_bytes())
    for start in range(flushed[durable - 1], len(content), SECTOR):
        if random.random() < 0.5:
            length = len(content[start : start + SECTOR])
            content[start : start + SECTOR] = random.randbytes(length)
    wal.write_bytes(content)
    assert await commits_in(crashed) >= durable


@pytest.mark.parametrize("unflushed", [1, 2, 1_000])
async def test_what_was_refused_since_it_could_not_be_flushed_does_not_come_back(
    tmp_path: Path, unflushed: int
) -> None:
    """SQLite has written it by then, whole, and the next process would find it."""
    path = tmp_path / "hub.db"
    with failing_disk() as disk:
        storage = await open_database(path)
        feed = await Scene(storage).add_feed()
        entries = (an_entry("refused", title=noise(50_000)),)
        disk.unflushed = unflushed
        with pytest.raises(WriteFailed):
            await storage.log.commit(
                fetch(feed, entries=entries, records=(record("refused"),))
            )
        assert storage.write_error()
        for name in ("hub.db", "hub.db-wal", "hub.db.key"):
            copyfile(path.with_name(name), path.with_name(f"crashed-{name}"))
        disk.unflushed = 0
        await storage.log.commit(fetch(feed, records=(record(),)))
        assert storage.write_error() == ""
        await storage.close()

    wal = path.with_name("crashed-hub.db-wal").stat().st_size
    assert await commits_in(leave(tmp_path, "died", wal)) == 0
    assert disk.refused["xSync"] == min(unflushed, 2)


async def write_and_crash(path: Path) -> list[int]:
    """How long the WAL was after each commit; copies of both files lie beside."""
    storage = await open_database(path)
    feed = await Scene(storage).add_feed()
    wal, flushed = path.with_name("hub.db-wal"), []
    for number in range(COMMITS):
        key = f"entry {number}"
        entries = (an_entry(key, title=noise(700 * number)),)
        await storage.log.commit(fetch(feed, entries=entries, records=(record(key),)))
        flushed.append(wal.stat().st_size)
    for name in ("hub.db", "hub.db-wal", "hub.db.key"):
        copyfile(path.with_name(name), path.with_name(f"crashed-{name}"))
    await storage.close()
    return flushed


def leave(directory: Path, name: str, length: int) -> Path:
    """What the cut left: the database of the next process."""
    (directory / name).mkdir()
    for each in ("hub.db", "hub.db.key"):
        copyfile(directory / f"crashed-{each}", directory / name / each)
    wal = (directory / "crashed-hub.db-wal").read_bytes()[:length]
    (directory / name / "hub.db-wal").write_bytes(wal)
    return directory / name / "hub.db"


async def commits_in(path: Path) -> int:
    """How many there are, all of them whole and in order from the first."""
    storage = await open_database(path)
    try:
        found = await positions_of(storage)
    finally:
        await storage.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert found == [Position(number) for number in range(1, len(found) + 1)]
    return len(found)


async def positions_of(storage: SqliteStorage) -> list[Position]:
    records = await storage.log.records(after=Position(0), limit=2 * COMMITS)
    refs = [ref.entry_id for each in records for ref in each.entries]
    assert len(await storage.log.entries(refs)) == len(refs)
    return [each.position for each in records]
