"""A database is the same in another engine, whatever breaks the copying off."""

from __future__ import annotations

import asyncio
import errno
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest

from storage.copying import CopyStage, OnCopyProgress, copy_content
from storage.copying.copied_tables import TABLES
from storage.database_url import open_storage
from storage.errors import CopyDiffers, DatabaseUnusable, StorageError, StorageFull
from storage.postgres.polling_state import NUMBERS
from storage.secrets import key_path
from storage.sqlite.schema import run_pending
from tests.support.failing_disk import failing_disk
from tests.support.filled_database import FIRST, HEAD, ROWS, make_filled
from tests.support.new_database import new_postgres
from tests.support.storage_scene import Scene

OWN = {"meta", "search_state", "disk_samples", "search_queue", "searched", "claims"}
DERIVED = {
    *("feed_counts", "public_count", "subscription_counts", "pending_counts"),
    *("listings", "listing_counts", "feed_audience"),
}
OWN_ON_A_SERVER = {
    "fanfare_schema",
    "hub",
    "log_head",
    "nodes",
    "lanes",
    "shards",
    "control",
    "feed_outcomes",
}
OF_A_SERVER = {
    *(("feeds", "credentials_hash"), ("records", "news"), ("event_queue", "is_of_hub")),
    *(("subscriptions", "secret_hash"), ("subscriptions", "wants")),
    *(("earlier_polls", each) for each in ("slot", "turn")),
    *(("feed_hot", each) for each in (*NUMBERS, "fresh_for", "next_fetch", "pace")),
    ("feed_hot", "version"),
}
"""Columns that are made of others, or are in another table elsewhere."""
OF_NODES = {
    *(("chunks", "incarnation"), ("retries", "incarnation")),
    ("retries", "leased_until"),
}
"""Columns of leases, which no copy holds."""
UNFINISHED = r"unfinished copy of .*filled\.db; run `fanfare db copy` again"


@pytest.fixture
async def location() -> AsyncIterator[str]:
    async with new_postgres() as url:
        yield url


@pytest.fixture
async def filled(tmp_path: Path) -> Path:
    path = tmp_path / "filled.db"
    await make_filled(path)
    return path


async def copy(
    source: Path | str,
    target: Path | str,
    tell: OnCopyProgress = lambda stage, done, total: None,
    **more: bool,
) -> int:
    """How many rows; the key of a server's is beside the file that is named first."""
    urls = [
        each if isinstance(each, str) else f"sqlite:{each}" for each in (source, target)
    ]
    path = next(each for each in (source, target) if isinstance(each, Path))
    local = path.with_name("state") / "fanfare"
    made = await asyncio.to_thread(copy_content, *urls, local, tell, **more)
    return made.rows


def content(path: Path) -> dict[str, list[Any]]:
    """All rows of all tables; what is made anew, the index of words, is left out."""
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute(
            "SELECT name FROM pragma_table_list WHERE type = 'table'"
            " AND schema = 'main' AND name NOT IN ('sqlite_schema', 'search_state')"
        ).fetchall()
        return {
            name: sorted(map(repr, connection.execute(f"SELECT * FROM {name}")))  # noqa: S608
            for (name,) in names
        }


def schema(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master")}


def execute(path: Path, *statements: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection, connection:
        for each in statements:
            found = connection.execute(each).fetchall()
        return found


class BrokenOff(Exception):
    """By whatever."""


def stop_at(step: int) -> OnCopyProgress:
    """Break off after so many batches were written."""
    left = step

    def tell(stage: CopyStage, done: int, total: int) -> None:
        nonlocal left
        left -= stage is CopyStage.COPYING
        if not left:
            raise BrokenOff

    return tell


# --- what is copied ---


def test_no_table_and_no_column_of_sqlite_is_forgotten() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        run_pending(connection)
        there = connection.execute(
            "SELECT t.name, c.name"
            " FROM pragma_table_list t, pragma_table_info(t.name) c"
            " WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%'"
            " AND t.name NOT LIKE 'former%'"
        ).fetchall()
    copied = {
        (each.sqlite.partition(" ")[0], column.sqlite)
        for each in TABLES
        for column in each.columns
    }

    left = {(table, name) for table, name in there if table not in {*OWN, *DERIVED}}

    assert left - copied == {("fanouts", "is_next")}
    assert copied <= left


async def test_no_table_and_no_column_of_postgresql_is_forgotten(location: str) -> None:
    with psycopg.connect(location) as connection:
        there = connection.execute(
            "SELECT c.relname, a.attname FROM pg_class c"
            " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0"
            " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')"
            " AND NOT c.relispartition AND NOT a.attisdropped AND a.attgenerated = ''"
        ).fetchall()
    copied = {(each.name, column.name) for each in TABLES for column in each.columns}

    left = {
        (table, name)
        for table, name in there
        if table not in {*OWN, *DERIVED, *OWN_ON_A_SERVER}
    }

    assert left - copied == OF_A_SERVER | OF_NODES
    assert copied - left == {("records", "any_fresh"), ("feed_hot", "polling")}


async def test_all_is_the_same_after_a_way_to_the_server_and_back(
    filled: Path, location: str, tmp_path: Path
) -> None:
    back = tmp_path / "back.db"
    there = await copy(filled, location)
    assert await copy(location, back) == there
    assert content(back) == content(filled)
    assert schema(back) == schema(filled)
    assert key_path(back).read_bytes() == key_path(filled).read_bytes()
    part = "SELECT rowid FROM feed_texts WHERE feed_texts MATCH 'rl4'"
    assert execute(back, part) == [(4,)]


async def test_a_hub_goes_on_in_the_copy_as_it_would_have(
    filled: Path, location: str, tmp_path: Path
) -> None:
    await copy(filled, location)
    storage = await open_storage(location, tmp_path / "state" / "fanfare")
    try:
        status, scene = await storage.status(), Scene(storage)
        feed = await scene.add_feed()
        subscription = await scene.subscribe(feed)
        secrets = [
            each.secret for each in await storage.subscriptions.page(after=0, limit=9)
        ]
        await scene.publish(feed, "new")
        state, damage = await storage.search.state(), await storage.find_damage()
    finally:
        await storage.close()

    ((epoch,),) = execute(filled, "SELECT epoch FROM meta")
    assert (status.epoch, status.log_end) == (epoch, HEAD)
    assert feed.id == subscription.id == FIRST + ROWS
    assert secrets == ["", "secret 4", "secret 5", ""]
    assert state.unread == HEAD + 1  # the index is made anew
    assert damage == ()


async def test_a_character_that_postgresql_does_not_have_is_replaced(
    filled: Path, location: str
) -> None:
    execute(filled, "UPDATE feeds SET title = 'a' || char(0) || 'b' WHERE id = 3")
    await copy(filled, location)
    with psycopg.connect(location) as connection:
        title = connection.execute("SELECT title FROM feeds WHERE id = 3").fetchone()
    assert title == ("a\ufffdb",)


# --- what breaks it off ---


async def test_a_copy_goes_on_wherever_it_was_broken_off(
    filled: Path, tmp_path: Path
) -> None:
    target = tmp_path / "copy.db"

    for _ in TABLES:
        with pytest.raises(BrokenOff):
            await copy(filled, target, stop_at(1))
    with pytest.raises(DatabaseUnusable, match=UNFINISHED):
        await open_storage(f"sqlite:{target}")
    await copy(filled, target)

    assert content(target) == content(filled)


@pytest.mark.parametrize("step", [1, 25, len(TABLES)])
async def test_a_copy_to_a_server_goes_on_and_no_hub_starts_before(
    filled: Path, location: str, step: int, tmp_path: Path
) -> None:
    with pytest.raises(BrokenOff):
        await copy(filled, location, stop_at(step))
    with pytest.raises(DatabaseUnusable, match=UNFINISHED):
        await open_storage(location, tmp_path / "state" / "fanfare")
    stages = []

    await copy(filled, location, lambda stage, done, total: stages.append(stage))

    assert stages.count(CopyStage.REREADING) == step
    assert stages.count(CopyStage.COPYING) == len(TABLES) - step
    assert stages.count(CopyStage.CHECKING) == len(TABLES)


async def test_a_copy_to_a_server_begins_anew_if_that_is_asked_for(
    filled: Path, location: str, tmp_path: Path
) -> None:
    with pytest.raises(BrokenOff):
        await copy(filled, location, stop_at(30))
    execute(filled, "UPDATE feeds SET title = 'changed'")
    await copy(filled, location, restart=True)
    back = tmp_path / "back.db"
    await copy(location, back)

    assert content(back) == content(filled)


async def test_a_lost_connection_breaks_a_copy_off_and_it_goes_on(
    filled: Path, location: str, tmp_path: Path
) -> None:
    def cut(stage: CopyStage, done: int, total: int) -> None:
        if stage is CopyStage.COPYING and done > total / 2:
            with psycopg.connect(location, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )

    with pytest.raises(StorageError, match=r"write failed|not be read") as raised:
        await copy(filled, location, cut)
    await copy(filled, location)
    back = tmp_path / "back.db"
    await copy(location, back)

    assert not isinstance(raised.value, DatabaseUnusable)
    assert content(back) == content(filled)


async def test_a_full_disk_breaks_a_copy_off_and_it_goes_on(
    filled: Path, tmp_path: Path
) -> None:
    target = tmp_path / "copy.db"
    with failing_disk() as disk:

        def fill(stage: CopyStage, done: int, total: int) -> None:
            if stage is CopyStage.COPYING and done > total / 2:
                disk.error = errno.ENOSPC

        with pytest.raises(StorageFull, match="disk is full"):
            await copy(filled, target, fill)
    await copy(filled, target)

    assert content(target) == content(filled)


async def test_a_full_disk_of_a_server_breaks_a_copy_off_and_it_goes_on(
    filled: Path, location: str, tmp_path: Path
) -> None:
    """What the server says then is said by a condition of a table."""

    def change(*statements: LiteralString) -> None:
        with psycopg.connect(location, autocommit=True) as connection:
            for each in statements:
                connection.execute(each)

    def fill(stage: CopyStage, done: int, total: int) -> None:
        if stage is CopyStage.COPYING:
            change(_NO_SPACE, _UNFILL, _FILL)

    with pytest.raises(StorageFull, match="No space left on device"):
        await copy(filled, location, fill)
    change(_UNFILL, "DROP FUNCTION fail")
    await copy(filled, location)
    back = tmp_path / "back.db"
    await copy(location, back)

    assert content(back) == content(filled)


_FILL = "ALTER TABLE records ADD CONSTRAINT no_space CHECK (fail())"
_UNFILL = "ALTER TABLE records DROP CONSTRAINT IF EXISTS no_space"
_NO_SPACE = """
CREATE OR REPLACE FUNCTION fail() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full';
END $$
"""


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE accounts SET name = 'other' WHERE id = 4",  # a table that was whole
        "DELETE FROM accounts WHERE id = 4",
        "INSERT INTO accounts VALUES (9, 'more', 0)",
    ],
)
async def test_a_source_that_has_changed_meanwhile_is_found_out(
    filled: Path, change: str, tmp_path: Path
) -> None:
    target = tmp_path / "copy.db"
    with pytest.raises(BrokenOff):
        await copy(filled, target, stop_at(9))
    execute(filled, change)

    with pytest.raises(DatabaseUnusable, match=r"has changed since .* \(accounts\)"):
        await copy(filled, target)
    await copy(filled, target, restart=True)

    assert content(target) == content(filled)


async def test_a_copy_that_is_not_the_same_is_not_completed(
    filled: Path, tmp_path: Path
) -> None:
    target = tmp_path / "copy.db"

    def spoil(stage: CopyStage, done: int, total: int) -> None:
        if stage is CopyStage.INDEXING:
            execute(target, "UPDATE stragglers SET position = 4 WHERE position = 3")

    with pytest.raises(CopyDiffers, match="retries has 3 rows with the checksum"):
        await copy(filled, target, spoil)
    with pytest.raises(DatabaseUnusable, match=UNFINISHED):
        await open_storage(f"sqlite:{target}")
