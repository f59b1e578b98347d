"""Expand, roll, contract: hubs of the former version go on while a newer one migrates.

The programs of these tests are this one, whose newest schema is `LATEST`, and a newer
one, of which only the migrations are there.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from storage.errors import DatabaseTooNew, DatabaseUnusable, StorageError
from storage.postgres import open_database
from storage.postgres.operations import PostgresStorage
from storage.postgres.schema import (
    Script,
    find_schema,
    latest_schema,
    needed_schema,
    run_migrations,
    scripts,
)
from storage.records import NewFeed, NewNode
from storage.sqlite.schema import latest_version
from tests.support.postgres_server import shared_server
from tests.support.storage_scene import START, Scene

LATEST = latest_schema()
EXPANDING = Script(
    version=LATEST + 1,
    name="expanding.sql",
    text="ALTER TABLE feeds ADD COLUMN more text NOT NULL DEFAULT 'new';",
)
CONTRACTING = Script(
    version=LATEST + 2,
    name="contracting.sql",
    text=f"-- oldest program {LATEST + 1}\nDROP FUNCTION require_term;",
)
BREAKING = Script(
    version=LATEST + 1,
    name="breaking.sql",
    text=f"-- oldest program {LATEST + 1}\nALTER TABLE feeds RENAME TO topics;",
)
REMOVES = re.compile(
    r"\b(DROP (?!INDEX)|RENAME|SET NOT NULL|ALTER COLUMN \w+ (SET DATA )?TYPE)", re.I
)
FIRST = 64
"""The script that creates everything."""


@asynccontextmanager
async def open_hub(tmp_path: Path) -> AsyncIterator[tuple[PostgresStorage, str]]:
    with shared_server().database() as location:
        async with open_again(location, tmp_path) as hub:
            yield hub, location


@asynccontextmanager
async def open_again(location: str, tmp_path: Path) -> AsyncIterator[PostgresStorage]:
    hub = await open_database(location, tmp_path / "key")
    yield hub
    await hub.close()


async def migrate(location: str, *newer: Script) -> int:
    """Migrate as a newer program does; the schema that the database then has."""
    async with await AsyncConnection[Any].connect(location, autocommit=True) as server:
        await run_migrations(server, "hub", (*scripts(), *newer), tries=1)
        return (await find_schema(server)).version


async def test_a_hub_goes_on_while_the_schema_is_expanded(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as (hub, location):
        term = await hub.membership.join(NewNode(name="former"))
        assert await migrate(location, EXPANDING) == EXPANDING.version

        feed, _ = await hub.feeds.add(NewFeed(url="https://a.example/"), START)
        await Scene(hub).publish(feed)
        await hub.membership.renew(term)
        async with open_again(location, tmp_path) as again:
            assert await again.feeds.get(feed.id)
            await again.membership.join(NewNode(name="another former one"))


async def test_a_newer_program_s_functions_stay_when_a_former_one_starts(
    tmp_path: Path,
) -> None:
    async with open_hub(tmp_path) as (_, location):
        await migrate(location, EXPANDING)
        mark = "UPDATE fanfare_schema SET functions = 'the newer one''s'"
        with psycopg.connect(location, autocommit=True) as server:
            server.execute(mark)
            async with open_again(location, tmp_path):
                row = server.execute("SELECT functions FROM fanfare_schema").fetchone()

    assert row == ("the newer one's",)


async def test_the_schema_is_contracted_when_no_former_hub_runs(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as (hub, location):
        term = await hub.membership.join(NewNode(name="former"))
        assert await migrate(location, EXPANDING, CONTRACTING) == EXPANDING.version
        await hub.membership.leave(term)

        assert await migrate(location, EXPANDING, CONTRACTING) == CONTRACTING.version

        with pytest.raises(StorageError, match="migrated meanwhile; upgrade this hub"):
            await hub.membership.join(NewNode(name="former"))
        with pytest.raises(DatabaseTooNew):
            await open_database(location, tmp_path / "key")


async def test_what_would_break_a_hub_that_runs_is_refused_whole(
    tmp_path: Path,
) -> None:
    async with open_hub(tmp_path) as (hub, location):
        await hub.membership.join(NewNode(name="former"))

        with pytest.raises(DatabaseUnusable, match=r"breaking\.sql .*\(former\); stop"):
            await migrate(location, BREAKING)

        assert await hub.feeds.add(NewFeed(url="https://a.example/"), START)
        assert await migrate(location) == LATEST


async def test_a_hub_whose_term_is_over_holds_nothing_up(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as (hub, location):
        await hub.membership.join(NewNode(name="killed"))
        with psycopg.connect(location, autocommit=True) as server:
            server.execute("UPDATE nodes SET expires_at = now() - interval '1 s'")

        assert await migrate(location, EXPANDING, CONTRACTING) == CONTRACTING.version


def test_what_removes_something_says_which_programs_it_lets_live() -> None:
    unmarked = [
        each.name
        for each in scripts()
        if each.version > FIRST and REMOVES.search(each.text)
        if not each.oldest_program
    ]

    assert unmarked == [], "see `storage.postgres.schema`: -- oldest program N"


def test_what_waits_until_former_hubs_have_ended_is_not_needed() -> None:
    assert needed_schema([EXPANDING, CONTRACTING]) == EXPANDING.version
    assert needed_schema([EXPANDING, BREAKING]) == BREAKING.version


def test_migrations_are_numbered_upwards() -> None:
    versions = [each.version for each in scripts()]

    assert versions == sorted(set(versions))


def test_the_newest_schema_has_the_same_number_on_both_engines() -> None:
    assert scripts()[-1].version == latest_version()
