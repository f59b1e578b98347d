"""What cannot be copied, or copied to, is refused in a sentence."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from storage.copying import copy_content
from storage.copying.postgres_copies import CopyTerm
from storage.database_url import open_storage
from storage.errors import DatabaseUnusable, StorageError, StorageFull
from storage.postgres.opening import prepare_to_copy
from storage.postgres.schema import latest_schema
from storage.records import NewNode
from storage.secrets import create_key, key_path
from storage.sqlite import backup as backups
from tests.support.new_database import new_postgres, open_new
from tests.support.postgres_server import other_user
from tests.support.storage_scene import Scene


@pytest.fixture
async def location() -> AsyncIterator[str]:
    async with new_postgres() as url:
        yield url


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A database with a feed, and a secret."""
    path = tmp_path / "hub.db"
    storage = await open_new(path)
    scene = Scene(storage)
    await scene.subscribe(await scene.add_feed(), secret="shared")
    await storage.close()
    return path


async def copy(source: Path | str, target: Path | str) -> None:
    urls = [
        each if isinstance(each, str) else f"sqlite:{each}" for each in (source, target)
    ]
    path = next(each for each in (source, target) if isinstance(each, Path))
    local = path.with_name("state") / "fanfare"
    await asyncio.to_thread(copy_content, *urls, local, lambda stage, done, total: None)


async def refusal(source: Path | str, target: Path | str) -> str:
    with pytest.raises(DatabaseUnusable) as raised:
        await copy(source, target)
    return str(raised.value)


def execute(location: str, statement: str) -> None:
    with psycopg.connect(location, autocommit=True) as connection:
        connection.execute(statement)


async def until_lost(term: CopyTerm) -> None:
    async with asyncio.timeout(60):
        while True:
            term.require()
            await asyncio.sleep(0.01)


async def test_a_hub_on_either_side(path: Path, location: str, tmp_path: Path) -> None:
    running = await open_storage(f"sqlite:{path}")
    try:
        with_source = await refusal(path, tmp_path / "copy.db")
        with_target = await refusal(location, path)
    finally:
        await running.close()

    assert f"another hub (process {os.getpid()}) is using this database" in with_source
    assert "another hub" in with_target


@pytest.mark.parametrize("is_source", [True, False])
async def test_a_hub_at_a_server(
    path: Path, location: str, is_source: bool, tmp_path: Path
) -> None:
    execute(location, "UPDATE hub SET key_check = ''")
    hub = await open_storage(location, tmp_path / "elsewhere" / "fanfare")
    term = await hub.membership.join(NewNode(name="there"))

    async def renew() -> None:
        while True:
            await hub.membership.renew(term)
            await asyncio.sleep(0.1)

    renewing = asyncio.create_task(renew())
    new = tmp_path / "new.db"
    sides = (location, new) if is_source else (path, location)
    try:
        told = await refusal(*sides)
    finally:
        renewing.cancel()
        await hub.close()

    assert told.endswith("another hub (there) is using this database; stop it first")
    assert not new.exists()


async def test_a_copy_ends_if_its_term_cannot_be_renewed(location: str) -> None:
    settings = await prepare_to_copy(location, is_target=False)
    with CopyTerm(settings, renewal_seconds=0.01).held() as term:
        term.require()
        execute(
            location,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        with pytest.raises(StorageError, match="the database could not be read"):
            await until_lost(term)


async def test_a_target_that_is_in_use_already(path: Path, location: str) -> None:
    taken = path.with_name("taken.db")
    shutil.copyfile(path, taken)
    await copy(path, location)

    to_file = await refusal(path, taken)
    to_server = await refusal(path, location)

    assert to_file.endswith(
        "exists already, and is no unfinished copy; name a new file"
    )
    assert "it is not empty (feeds), and is no unfinished copy; name a new" in to_server


async def test_what_is_not_there_and_the_same_twice(path: Path) -> None:
    missing = path.with_name("missing.db")
    assert (await refusal(missing, path)).endswith("there is no such file")
    assert "cannot be copied to itself" in await refusal(path, path)
    assert not missing.exists()


async def test_the_unfinished_copy_of_another_database(
    path: Path, tmp_path: Path
) -> None:
    target, other = tmp_path / "copy.db", tmp_path / "other" / "other.db"
    await (await open_storage(f"sqlite:{other}")).close()
    await copy(path, target)
    with closing(sqlite3.connect(target)) as connection, connection:
        state = (
            b"\x84\xa8location\xa1x\xa6engine\xa6sqlite\xa9key_check\xa0\xa5epoch\xa0"
        )
        connection.execute("CREATE TABLE fanfare_copy (name TEXT, state BLOB)")
        connection.execute("INSERT INTO fanfare_copy VALUES ('', ?)", (state,))
    key_path(target).unlink()

    told = await refusal(other, target)
    as_source = await refusal(target, tmp_path / "new.db")

    assert told.endswith(f"this is an unfinished copy of x, not of {other}")
    assert "this is an unfinished copy of x; run `fanfare db copy` again" in as_source


async def test_a_schema_of_another_version(path: Path, location: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 63")
    execute(location, "UPDATE fanfare_schema SET version = version + 1")
    try:
        older = await refusal(path, location)
        newer = await refusal(location, path.with_name("new.db"))
    finally:
        execute(location, "UPDATE fanfare_schema SET version = version - 1")

    known = latest_schema()
    assert f"63 is older than {known}" in older
    assert "run `fanfare db migrate`" in older
    assert f"{known + 1} is newer than {known}" in newer


async def test_a_key_that_is_missing_or_of_another_database(
    path: Path, location: str
) -> None:
    others = path.with_name("state") / "fanfare.key"
    others.parent.mkdir()
    create_key(others)
    taken = await refusal(path, location)
    key_path(path).unlink()
    missing = await refusal(path, location)

    assert f"{others} is the key of another database; move it away" in taken
    assert "its key file hub.db.key is missing" in missing


async def test_a_disk_without_room(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(backups, "RESERVE_BYTES", 1 << 60)
    target = tmp_path / "full" / "copy.db"
    with pytest.raises(StorageFull, match="bytes left, and the copy takes"):
        await copy(path, target)
    assert not target.exists()


async def test_a_user_without_rights(path: Path, location: str) -> None:
    with other_user(location, "copyist") as limited:
        without_any = await refusal(path, limited)
        execute(
            location,
            "GRANT ALL ON ALL TABLES IN SCHEMA public TO copyist;"
            "GRANT CREATE ON SCHEMA public TO copyist",
        )
        as_guest = await refusal(path, limited)

    assert "lacks a right" in without_any or "may not read and write" in without_any
    assert "the user lacks a right: must be owner of table" in as_guest
