"""Backups: a consistent copy beside a running hub, and putting one in place."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.errors import DestinationTaken, WriteFailed
from storage.sqlite import SqliteStorage, copy_at_rest, find_damage, open_database
from storage.sqlite.backup import _claimed, copy_database, drop_foreign_wal
from tests.support.killed import killed_at_each_step
from tests.support.storage_scene import Scene, fetch, record


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[SqliteStorage]:
    storage = await open_database(tmp_path / "hub.db")
    yield storage
    await storage.close()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return tmp_path / "copy.db"


async def epoch_of(path: Path) -> str:
    storage = await open_database(path)
    cursor = await storage.log.end()
    await storage.close()
    return cursor.epoch


async def test_a_copy_holds_all_that_was_committed_with_its_secrets(
    storage: SqliteStorage, copy: Path
) -> None:
    scene = Scene(storage)
    feed = await scene.add_feed()
    added = await scene.subscribe(feed, secret="shared")
    await scene.publish(feed, "k")

    await storage.backup(copy)

    restored = await open_database(copy)
    assert await restored.subscriptions.get(added.id) == added
    assert (await restored.log.end()).position == 1
    await restored.close()
    for each in (copy, copy.with_name("copy.db.key")):
        assert each.stat().st_mode & 0o777 == 0o600


async def test_the_first_opening_of_a_copy_starts_a_new_epoch(
    storage: SqliteStorage, copy: Path
) -> None:
    await storage.backup(copy)

    first, second = await epoch_of(copy), await epoch_of(copy)

    assert first != (await storage.log.end()).epoch
    assert first == second
    assert first.isalnum()


async def test_a_copy_is_consistent_while_the_hub_writes(
    storage: SqliteStorage, copy: Path
) -> None:
    scene = Scene(storage)
    feed = await scene.add_feed()
    is_done = False

    async def keep_writing() -> None:
        while not is_done:
            await storage.log.commit(fetch(feed, records=(record(), record())))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(keep_writing())
        await storage.log.wait(10, 10)
        await storage.backup(copy)
        is_done = True

    restored = await open_database(copy)
    head = (await restored.log.end()).position
    kept = await restored.log.records(after=0, limit=100_000)
    await restored.close()
    assert head >= 10
    assert [each.position for each in kept] == list(range(1, head + 1))
    assert head % 2 == 0, "never half a transaction"


@pytest.mark.parametrize("taken", ["copy.db", "copy.db.key"])
async def test_nothing_is_overwritten(
    storage: SqliteStorage, copy: Path, taken: str
) -> None:
    copy.with_name(taken).write_text("precious")

    with pytest.raises(WriteFailed, match="exists already"):
        await storage.backup(copy)

    assert copy.with_name(taken).read_text() == "precious"


async def test_of_two_backups_to_one_place_at_once_one_is_made_and_whole(
    storage: SqliteStorage, copy: Path
) -> None:
    feed = await Scene(storage).add_feed()
    outcomes = await asyncio.gather(
        *(storage.backup(copy) for _ in range(4)), return_exceptions=True
    )
    refused = [each for each in outcomes if each is not None]
    assert len(refused) == 3
    assert all(isinstance(each, DestinationTaken) for each in refused)
    restored = await open_database(copy)
    assert await restored.feeds.get(feed.id) == feed
    await restored.close()


def test_another_backup_under_way_is_left_alone(copy: Path, tmp_path: Path) -> None:
    """Also if it ends, and its file gets its name, at that very moment."""
    with _claimed(copy) as partial:
        with pytest.raises(DestinationTaken, match="is running"):
            copy_database(tmp_path / "hub.db", copy)
        assert partial.exists()
    assert not partial.exists()


async def test_what_an_interrupted_backup_left_is_in_nobodys_way(
    storage: SqliteStorage, copy: Path
) -> None:
    copy.with_name("copy.db.partial").write_bytes(b"half of a database" * 1000)
    await storage.backup(copy)
    restored = await open_database(copy)
    await restored.close()
    assert not copy.with_name("copy.db.partial").exists()


def test_killed_at_any_step_a_backup_is_whole_or_not_there(
    copy: Path, tmp_path: Path
) -> None:
    """And the next one to the same name is made."""
    path = tmp_path / "hub.db"
    asyncio.run(epoch_of(path))

    def prepare() -> None:
        copy.unlink(missing_ok=True)

    was_there = []
    for _ in killed_at_each_step(
        prepare, lambda progress: copy_at_rest(path, copy, progress)
    ):
        was_there.append(copy.exists())
        if not copy.exists():
            copy_at_rest(path, copy)
        assert find_damage(copy) == ()
        assert find_damage(path) == ()
    assert was_there == sorted(was_there)
    assert set(was_there) == {False, True}


async def test_a_destination_that_cannot_be_written_is_named(
    storage: SqliteStorage, tmp_path: Path
) -> None:
    destination = tmp_path / "nowhere" / "copy.db"

    with pytest.raises(WriteFailed, match=r"cannot write .*nowhere/copy\.db"):
        await storage.backup(destination)


async def test_a_copy_whose_key_cannot_be_written_leaves_nothing_behind(
    storage: SqliteStorage, copy: Path
) -> None:
    in_the_way = copy.with_name("copy.db.key.partial")
    in_the_way.mkdir()

    with pytest.raises(WriteFailed, match="cannot write"):
        await storage.backup(copy)

    assert list(copy.parent.glob("copy.db*")) == [in_the_way]


def test_a_database_that_cannot_be_read_is_not_copied(
    copy: Path, tmp_path: Path
) -> None:
    (tmp_path / "hub.db").write_bytes(b"no database" * 999)

    with pytest.raises(WriteFailed, match="not a database"):
        copy_database(tmp_path / "hub.db", copy)

    assert not list(tmp_path.glob("copy.db*"))


async def test_a_copy_takes_the_place_of_a_crashed_hubs_database(
    storage: SqliteStorage, copy: Path, tmp_path: Path
) -> None:
    scene = Scene(storage)
    feed = await scene.add_feed("in the copy")
    await storage.backup(copy)
    await scene.publish(feed, "after the copy")
    place = tmp_path / "restored" / "hub.db"
    place.parent.mkdir()
    shutil.copy(tmp_path / "hub.db-wal", place.with_name("hub.db-wal"))
    shutil.copy(copy, place)
    shutil.copy(copy.with_name("copy.db.key"), place.with_name("hub.db.key"))

    restored = await open_database(place)

    assert (await restored.log.end()).position == 0, "the old WAL is not played in"
    assert await restored.feeds.get(feed.id) == feed
    await restored.close()


def test_a_wal_of_its_own_is_kept(tmp_path: Path) -> None:
    path, wal = tmp_path / "hub.db", tmp_path / "hub.db-wal"
    path.write_bytes(b"SQLite format 3\x00\x10\x00\x02\x02" + bytes(80))
    wal.write_bytes(b"frames")

    drop_foreign_wal(path)

    assert wal.exists()
