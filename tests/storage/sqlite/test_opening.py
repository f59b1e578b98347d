"""Opening a file: what is refused, with which words, and what is put in order."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from storage.database_url import open_storage
from storage.errors import (
    DatabaseLocked,
    DatabaseOutdated,
    DatabaseTooNew,
    DatabaseUnusable,
    StorageClosed,
)
from storage.records import OPERATOR, Credentials, NewFeed
from storage.sqlite import open_database
from storage.sqlite.schema import latest_version
from tests.support.storage_scene import START, Scene

HOLD = """
import asyncio, sys
from pathlib import Path
from storage.sqlite import open_database

async def main():
    storage = await open_database(Path(sys.argv[1]))
    print("open", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "hub.db"


def make(path: Path, *, secret: str = "", migrate: bool = True) -> None:
    """Open it, subscribe somebody, and close it."""

    async def session() -> None:
        storage = await open_database(path, migrate=migrate)
        scene = Scene(storage)
        await scene.subscribe(await scene.add_feed(), secret=secret)
        await storage.close()

    asyncio.run(session())


def change(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(sql)
        connection.commit()


async def test_a_new_file_is_made_with_its_directory_for_its_owner_only(
    tmp_path: Path,
) -> None:
    path = tmp_path / "new" / "data" / "hub.db"

    storage = await open_database(path)
    status = await storage.status()
    await storage.close()

    assert (status.engine, status.location) == ("sqlite", str(path))
    assert status.version == status.latest == latest_version()
    assert (status.log_end, status.size_bytes > 0) == (0, True)
    for each in (path, path.with_name("hub.db.key")):
        assert each.stat().st_mode & 0o777 == 0o600


async def test_everything_is_there_when_it_is_opened_again(path: Path) -> None:
    first = await open_database(path)
    feed = await Scene(first).add_feed(credentials=Credentials(username="ann"))
    added = await Scene(first).subscribe(feed, secret="shared", account=OPERATOR)
    await Scene(first).publish(feed, "k")
    cursor = await first.log.end()
    await first.close()

    again = await open_database(path)

    assert await again.log.end() == cursor
    assert await again.subscriptions.get(added.id) == added
    (target,) = await again.feeds.targets([feed.id])
    assert target.credentials == Credentials(username="ann")
    await again.close()


def test_secrets_cannot_be_read_in_the_file(path: Path) -> None:
    async def session() -> None:
        storage = await open_database(path)
        scene = Scene(storage)
        feed = await scene.add_feed(credentials=Credentials(password="hunter-two"))
        await scene.subscribe(feed, secret="tell-nobody", account=OPERATOR)
        await storage.close()

    asyncio.run(session())
    content = path.read_bytes()

    assert b"https://subscriber.example/" in content
    assert b"tell-nobody" not in content
    assert b"hunter-two" not in content


# --- one owner ---


async def test_a_second_opening_is_refused_and_names_the_owner(path: Path) -> None:
    storage = await open_database(path)

    with pytest.raises(DatabaseLocked, match=rf"process {os.getpid()}\b"):
        await open_database(path)

    await storage.close()
    again = await open_database(path)
    await again.close()


def test_another_process_is_refused_until_the_owner_is_killed(path: Path) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == "open\n"

    with pytest.raises(DatabaseLocked, match=str(owner.pid)):
        make(path)

    owner.send_signal(signal.SIGKILL)
    owner.wait(10)
    owner.stdout.close()
    make(path)


def a_symbolic_link(path: Path, other: Path) -> None:
    other.symlink_to(path)


def a_hard_link(path: Path, other: Path) -> None:
    other.hardlink_to(path)


def a_directory_that_is_a_link(path: Path, other: Path) -> None:
    other.parent.rmdir()
    other.parent.symlink_to(path.parent)
    other.with_name("link.db").symlink_to(path.name)
    other.with_name("link.db").rename(other)


SECOND_NAMES = [a_symbolic_link, a_hard_link, a_directory_that_is_a_link]


@pytest.mark.parametrize("link", SECOND_NAMES)
def test_a_second_hub_is_refused_by_whatever_name_it_finds_the_file(
    path: Path, link: Callable[[Path, Path], None]
) -> None:
    make(path)
    other = path.parent / "elsewhere" / "other.db"
    other.parent.mkdir()
    link(path, other)
    owner = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == "open\n"
    try:
        with pytest.raises(DatabaseLocked):
            make(other)
    finally:
        owner.send_signal(signal.SIGKILL)
        owner.wait(10)
        owner.stdout.close()
    make(path)


@pytest.mark.parametrize("link", SECOND_NAMES)
async def test_a_second_opening_within_a_process_is_refused_by_whatever_name(
    path: Path, link: Callable[[Path, Path], None]
) -> None:
    storage = await open_database(path)
    other = path.parent / "elsewhere" / "other.db"
    other.parent.mkdir()
    link(path, other)

    with pytest.raises(DatabaseLocked, match=rf"process {os.getpid()}\b"):
        await open_database(other)

    feed = await Scene(storage).add_feed()
    await storage.close()
    again = await open_database(path)
    assert await again.feeds.get(feed.id) is not None
    await again.close()


def test_a_key_that_lies_beside_a_link_is_found_and_moves_to_the_file(
    path: Path,
) -> None:
    make(path, secret="shared")
    name = path.parent / "elsewhere" / "name.db"
    name.parent.mkdir()
    name.symlink_to(path)
    key = path.with_name("hub.db.key")
    key.rename(name.with_name("name.db.key"))

    make(name)

    assert key.read_bytes() == name.with_name("name.db.key").read_bytes()
    assert key.stat().st_mode & 0o777 == 0o600


def test_a_name_that_leads_in_a_circle_is_refused(path: Path) -> None:
    path.symlink_to(path.with_name("other.db"))
    path.with_name("other.db").symlink_to(path)

    with pytest.raises(DatabaseUnusable, match="cannot be opened"):
        make(path)


def test_a_refused_opening_leaves_no_lock_behind(path: Path) -> None:
    path.write_bytes(b"no database at all" * 999)
    with pytest.raises(DatabaseUnusable):
        make(path)
    path.unlink()

    make(path)


# --- what is not ours, or not for us ---


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_bytes(b"no database at all" * 999)

    with pytest.raises(DatabaseUnusable, match="file is not a database"):
        make(path)


def test_a_directory_is_refused(path: Path) -> None:
    path.mkdir()

    with pytest.raises(DatabaseUnusable, match="Is a directory"):
        make(path)


def test_a_path_below_a_file_is_refused(path: Path) -> None:
    path.touch()

    with pytest.raises(DatabaseUnusable, match="cannot be opened"):
        make(path / "hub.db")


def test_the_database_of_another_program_is_refused_and_left_alone(
    path: Path,
) -> None:
    change(path, "CREATE TABLE bookmarks (url)")
    before = path.read_bytes()

    with pytest.raises(DatabaseUnusable, match="another program"):
        make(path)

    assert path.read_bytes() == before


def test_a_newer_schema_is_refused_with_both_versions(path: Path) -> None:
    make(path)
    change(path, "PRAGMA user_version = 99")

    with pytest.raises(DatabaseTooNew) as refused:
        make(path)

    assert (refused.value.found, refused.value.known) == (99, latest_version())


def test_an_older_schema_is_refused_unless_it_may_be_migrated(path: Path) -> None:
    with pytest.raises(DatabaseOutdated, match="fanfare db migrate"):
        make(path, migrate=False)

    make(path)
    make(path, migrate=False)


# --- the key ---


def test_a_missing_key_is_named_if_there_are_secrets(path: Path) -> None:
    make(path, secret="shared")
    path.with_name("hub.db.key").unlink()

    with pytest.raises(DatabaseUnusable, match=r"hub\.db\.key is missing"):
        make(path)


def test_a_publisher_s_secret_needs_the_key_as_well(path: Path) -> None:
    async def session() -> None:
        storage = await open_database(path)
        feed = await Scene(storage).add_feed()
        await storage.feeds.set_publish_secret(feed.id, "shared")
        await storage.close()

    asyncio.run(session())
    path.with_name("hub.db.key").unlink()

    with pytest.raises(DatabaseUnusable, match=r"hub\.db\.key is missing"):
        make(path)


def test_a_missing_key_is_made_anew_if_there_are_no_secrets(path: Path) -> None:
    make(path)
    path.with_name("hub.db.key").unlink()

    make(path, secret="shared")


def test_the_key_of_another_database_is_refused(path: Path, tmp_path: Path) -> None:
    make(path)
    other = tmp_path / "other.db"
    make(other)
    other.with_name("other.db.key").replace(path.with_name("hub.db.key"))

    with pytest.raises(DatabaseUnusable, match="belongs to another database"):
        make(path)


@pytest.mark.parametrize("content", [b"short", b"\xff" * 99, b""])
def test_a_file_that_is_no_key_is_refused(path: Path, content: bytes) -> None:
    path.with_name("hub.db.key").write_bytes(content)

    with pytest.raises(DatabaseUnusable, match="not a key file"):
        make(path)


@pytest.mark.parametrize("suffix", [".key", ".key.partial"])
def test_a_key_that_cannot_be_read_or_written_is_named(path: Path, suffix: str) -> None:
    path.with_name(f"hub.db{suffix}").mkdir()

    with pytest.raises(DatabaseUnusable, match="the key cannot be"):
        make(path)


# --- by its setting ---


async def test_a_setting_names_the_file(path: Path) -> None:
    storage = await open_storage(f"sqlite:{path}")

    assert (await storage.status()).location == str(path)
    await storage.close()


@pytest.mark.parametrize("setting", ["", "sqlite:", "mysql://host/db", "hub.db"])
async def test_another_setting_is_refused(setting: str) -> None:
    with pytest.raises(DatabaseUnusable, match='expected "sqlite:"'):
        await open_storage(setting)


async def test_the_password_in_a_refused_setting_is_not_repeated() -> None:
    with pytest.raises(DatabaseUnusable) as refused:
        await open_storage("mysql://ann:hunter-two@host/db")

    assert "hunter-two" not in str(refused.value)


# --- the end ---


async def test_a_closed_storage_answers_nothing_any_more(path: Path) -> None:
    storage = await open_database(path)
    await storage.close()
    await storage.close()

    with pytest.raises(StorageClosed):
        await storage.feeds.get(1)
    with pytest.raises(StorageClosed):
        await storage.feeds.add(NewFeed(url="https://a.example/"), START)
    with pytest.raises(StorageClosed):
        await storage.log.wait((await storage.log.end()).position, 30)
    with pytest.raises(StorageClosed):
        await storage.backup(path.with_name("copy.db"))


def test_closing_leaves_one_file_without_a_wal(path: Path) -> None:
    make(path)

    assert not path.with_name("hub.db-wal").exists()
