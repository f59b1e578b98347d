"""Damage is found and named, and nothing of the file is changed."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from storage.errors import DatabaseUnusable
from storage.secrets import create_key, key_path
from storage.sqlite import find_damage, open_database
from storage.sqlite.schema import latest_version
from tests.support.storage_scene import Scene

TWO_TABLES_IN_ONE_PLACE = (
    "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master"
    " WHERE name = 'feeds') WHERE name = 'seen_sets'"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    async def make() -> None:
        storage = await open_database(path)
        scene = Scene(storage)
        feed = await scene.add_feed()
        await scene.publish(feed, "a", "b")
        await storage.close()

    path = tmp_path / "hub.db"
    asyncio.run(make())
    return path


async def test_a_database_in_use_is_sound(tmp_path: Path) -> None:
    storage = await open_database(tmp_path / "hub.db")
    feed = await Scene(storage).add_feed()
    await Scene(storage).publish(feed, "a")
    assert await storage.find_damage() == ()
    await storage.close()


def sql(statement: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute(statement)
            connection.commit()

    return change


def lose_key(path: Path) -> None:
    key_path(path).unlink()


def change_key(path: Path) -> None:
    create_key(key_path(path))


def spoil_key(path: Path) -> None:
    key_path(path).write_text("no key")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def overwrite_page(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(b"\xff" * 4096)


@pytest.mark.parametrize(
    ("spoil", "finding"),
    [
        (lambda _path: None, ""),
        (sql(TWO_TABLES_IN_ONE_PLACE), "2nd reference to page"),
        (sql("UPDATE meta SET head = 0"), "the log goes from 1 to 1, not from 0 to 0"),
        (sql(f"PRAGMA user_version = {latest_version() + 1}"), "schema is newer"),
        (overwrite_page, "malformed"),
        (empty, "it is empty"),
        (lose_key, "its key file hub.db.key is missing"),
        (change_key, "belongs to another database"),
        (spoil_key, "this is not a key file"),
    ],
)
def test_what_is_wrong_is_said(
    path: Path, spoil: Callable[[Path], None], finding: str
) -> None:
    spoil(path)
    before = path.read_bytes()

    found = "\n".join(find_damage(path))

    assert finding in found
    assert bool(finding) == bool(found)
    assert path.read_bytes() == before


@pytest.mark.parametrize("is_there", [False, True])
def test_what_is_no_database_is_refused(tmp_path: Path, is_there: bool) -> None:
    path = tmp_path / "other.db"
    if is_there:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE of_others (id)")

    with pytest.raises(DatabaseUnusable):
        find_damage(path)
