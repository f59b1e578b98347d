"""A backup takes a database's place whole or not at all, and loses nothing."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from storage.errors import DatabaseLocked, DatabaseUnusable, StorageFull
from storage.sqlite import backup as backups
from storage.sqlite import open_database, restore_database
from storage.sqlite.schema import latest_version
from tests.support.killed import killed_at_each_step
from tests.support.new_database import open_new
from tests.support.storage_scene import Scene

STAMP = "then"
SECRET = "shared"


async def make(path: Path, feed: str, *, copy_to: Path | None = None) -> None:
    """A database with one feed and a secret, and perhaps a backup of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    storage = await open_new(path)
    scene = Scene(storage)
    await scene.subscribe(await scene.add_feed(feed), secret=SECRET)
    if copy_to is not None:
        await storage.backup(copy_to)
    await storage.close()


async def feeds_of(path: Path) -> list[str]:
    """Which feeds it has; what is encrypted can be read."""
    storage = await open_database(path)
    try:
        subscriptions = await storage.subscriptions.page(after=0, limit=9)
        assert [each.secret for each in subscriptions] == [SECRET]
        feeds = await storage.feeds.page(after=0, limit=9)
        return [each.url.removeprefix("https://")[0] for each in feeds]
    finally:
        await storage.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "hub.db"


@pytest.fixture
def former(path: Path) -> Path:
    return path.with_name("hub.db.before-restore-then")


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """Of a hub with the feed b."""
    path = tmp_path / "other" / "hub.db"
    asyncio.run(make(path, "b", copy_to=path.with_name("copy.db")))
    return path.with_name("copy.db")


def test_the_former_database_is_kept_with_its_key(
    path: Path, backup: Path, former: Path
) -> None:
    asyncio.run(make(path, "a"))
    epoch = asyncio.run(epoch_of(path))

    assert restore_database(backup, path, STAMP) == former

    assert asyncio.run(feeds_of(path)) == ["b"]
    assert asyncio.run(feeds_of(former)) == ["a"]
    assert asyncio.run(epoch_of(path)) != epoch
    assert asyncio.run(feeds_of(backup)) == ["b"], "it can be restored again"
    for each in path.parent.iterdir():
        assert each.stat().st_mode & 0o77 == 0, each


async def epoch_of(path: Path) -> str:
    storage = await open_database(path)
    status = await storage.status()
    await storage.close()
    return status.epoch


def test_where_no_database_is_one_is_made(path: Path, backup: Path) -> None:
    assert restore_database(backup, path, STAMP) is None
    assert asyncio.run(feeds_of(path)) == ["b"]


def test_a_crashed_hubs_wal_goes_with_its_database(
    path: Path, backup: Path, former: Path
) -> None:
    """And so it does with one that is too damaged to take it in."""
    asyncio.run(make(path, "a"))
    path.write_bytes(b"no database" * 1000)
    path.with_name("hub.db-wal").write_bytes(b"frames")

    restore_database(backup, path, STAMP)

    assert asyncio.run(feeds_of(path)) == ["b"]
    assert former.with_name(f"{former.name}-wal").read_bytes() == b"frames"


def test_the_key_may_be_missing_where_the_databases_own_fits(
    path: Path, backup: Path
) -> None:
    restore_database(backup, path, STAMP)
    backup.with_name("copy.db.key").unlink()

    restore_database(backup, path, STAMP)

    assert asyncio.run(feeds_of(path)) == ["b"]


def test_what_has_no_secrets_needs_no_key(path: Path, tmp_path: Path) -> None:
    async def make_plain() -> None:
        storage = await open_database(tmp_path / "plain.db")
        await Scene(storage).add_feed("c")
        await storage.close()

    asyncio.run(make_plain())
    (tmp_path / "plain.db.key").unlink()
    asyncio.run(make(path, "a"))

    restore_database(tmp_path / "plain.db", path, STAMP)

    async def feeds() -> int:
        storage = await open_database(path)
        found = await storage.feeds.page(after=0, limit=9)
        await storage.close()
        return len(found)

    assert asyncio.run(feeds()) == 1


def remove(backup: Path) -> None:
    backup.unlink()


def damage(backup: Path) -> None:
    """A table that is another's, too."""
    with closing(sqlite3.connect(backup)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master"
            " WHERE name = 'feeds') WHERE name = 'seen_sets'"
        )
        connection.commit()


def cut_off(backup: Path) -> None:
    with backup.open("r+b") as file:
        file.truncate(backup.stat().st_size - 8192)


def make_newer(backup: Path) -> None:
    with closing(sqlite3.connect(backup)) as connection:
        connection.execute(f"PRAGMA user_version = {latest_version() + 1}")


def lose_key(backup: Path) -> None:
    backup.with_name("copy.db.key").unlink()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (remove, "there is no such file"),
        (lambda it: it.write_bytes(b""), "this is not a Fanfare database"),
        (lambda it: it.write_bytes(b"text" * 999), "file is not a database"),
        (damage, "it is damaged"),
        (cut_off, "malformed"),
        (make_newer, "is newer than"),
        (lose_key, "its key file copy.db.key is missing"),
    ],
)
def test_what_cannot_be_restored_changes_nothing(
    path: Path, backup: Path, spoil: Callable[[Path], object], reason: str
) -> None:
    asyncio.run(make(path, "a"))
    before = sorted(each.name for each in path.parent.iterdir())
    spoil(backup)

    with pytest.raises(DatabaseUnusable, match=reason):
        restore_database(backup, path, STAMP)

    assert asyncio.run(feeds_of(path)) == ["a"]
    assert sorted(each.name for each in path.parent.iterdir()) == before


async def test_a_database_in_use_stays(path: Path, tmp_path: Path) -> None:
    storage = await open_database(path)
    await storage.backup(tmp_path / "copy.db")

    with pytest.raises(DatabaseLocked):
        restore_database(tmp_path / "copy.db", path, STAMP)

    await storage.close()


def test_a_database_is_not_restored_from_itself(path: Path) -> None:
    asyncio.run(make(path, "a"))

    with pytest.raises(DatabaseUnusable, match="the database itself"):
        restore_database(path, path, STAMP)


def test_what_does_not_fit_on_the_disk_is_not_begun(path: Path, backup: Path) -> None:
    wanted = shutil.disk_usage(backup.parent).free

    with pytest.raises(StorageFull, match="bytes left"):
        backups.require_room(backup.parent, wanted)


def test_killed_at_any_step_it_is_the_one_database_or_the_other(
    path: Path, backup: Path, former: Path, tmp_path: Path
) -> None:
    """Also where another one is restored at once, before anybody opened it."""
    kept = tmp_path / "kept"
    asyncio.run(make(kept / "hub.db", "a"))
    asyncio.run(make(tmp_path / "third" / "hub.db", "c"))

    def prepare() -> None:
        shutil.rmtree(path.parent, ignore_errors=True)
        shutil.copytree(kept, path.parent)

    outcomes = []
    for _ in killed_at_each_step(
        prepare, lambda progress: restore_database(backup, path, STAMP, progress)
    ):
        again = tmp_path / "again" / "hub.db"
        shutil.rmtree(again.parent, ignore_errors=True)
        shutil.copytree(path.parent, again.parent)
        [feed] = asyncio.run(feeds_of(path))
        outcomes.append(feed)
        assert former.exists() == (feed == "b"), "no second name of what is in use"
        if feed == "b":
            assert asyncio.run(feeds_of(former)) == ["a"]
        left = {each.name for each in path.parent.glob("*.restoring*")}
        assert left == set()
        restore_database(tmp_path / "third" / "hub.db", again, "later")
        assert asyncio.run(feeds_of(again)) == ["c"]
        assert asyncio.run(feeds_of(second_name(again))) == [feed]
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {"a", "b"}
    assert asyncio.run(feeds_of(path)) == ["b"]


def second_name(path: Path) -> Path:
    return path.with_name(f"{path.name}.before-restore-later")
