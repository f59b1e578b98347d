"""Expand, roll, contract: hubs of the former version go on while a newer one migrates.

The programs of these tests are this one, whose newest schema is `LATEST`, and a newer
one, of which only the migrations are there.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from storage.errors import (
    DatabaseOutdated,
    DatabaseTooNew,
    DatabaseUnusable,
    StorageError,
)
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
from tests.support.waiting import eventually

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
FAILING = Script(
    version=LATEST + 2,
    name="failing.sql",
    text="CREATE TABLE half (id int); SELECT 1 / 0;",
)
LOCKING = Script(
    version=LATEST + 1,
    name="locking.sql",
    text="LOCK TABLE tokens; LOCK TABLE feeds;",
)
REMOVES = re.compile(
    r"\b(DROP (?!INDEX)|RENAME|SET NOT NULL|ALTER COLUMN \w+ (SET DATA )?TYPE"
    r"|ALTER TYPE|ADD COLUMN (?![^,;]*DEFAULT)[^,;]*NOT NULL)",
    re.I,
)
FIRST = 64
"""The script that creates everything."""
CATALOG = """
SELECT 'version', to_jsonb(s)::text FROM fanfare_schema s
UNION ALL SELECT proname, xmin::text FROM pg_proc
UNION ALL SELECT relname, xmin::text FROM pg_class
    WHERE relnamespace = 'public'::regnamespace
UNION ALL SELECT relname || '.' || attname, a.xmin::text
    FROM pg_attribute a JOIN pg_class ON attrelid = pg_class.oid
    WHERE relnamespace = 'public'::regnamespace
ORDER BY 1, 2
"""
"""All that a migration, or the functions, would write anew."""
FORMER_FUNCTIONS = "UPDATE fanfare_schema SET functions = 'former'"
WAITING_FOR_LOCK = """
SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'feeds'::regclass
"""


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


async def open_without_leave(location: str, tmp_path: Path) -> PostgresStorage:
    return await open_database(location, tmp_path / "key", migrate=False)


async def migrate(location: str, *newer: Script, tries: int = 1) -> int:
    """Migrate as a newer program does; the schema that the database then has."""
    async with await AsyncConnection[Any].connect(location, autocommit=True) as server:
        await run_migrations(server, "hub", (*scripts(), *newer), tries)
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
        mark = (
            "UPDATE fanfare_schema SET functions = 'the newer one''s', program = 9999"
        )
        with psycopg.connect(location, autocommit=True) as server:
            server.execute(mark)
            async with open_again(location, tmp_path):
                row = server.execute("SELECT functions FROM fanfare_schema").fetchone()
            await (await open_without_leave(location, tmp_path)).close()

    assert row == ("the newer one's",)


async def test_a_migration_that_fails_is_named_and_leaves_those_before_it(
    tmp_path: Path,
) -> None:
    async with open_hub(tmp_path) as (_, location):
        said = r"migration failing\.sql failed: division by zero"
        with pytest.raises(DatabaseUnusable, match=said):
            await migrate(location, EXPANDING, FAILING)

        with psycopg.connect(location) as server:
            found = server.execute(
                "SELECT version, to_regclass('half'), (SELECT count(more) FROM feeds)"
                " FROM fanfare_schema"
            ).fetchone()
        assert found == (EXPANDING.version, None, 0)
        assert await migrate(location, EXPANDING) == EXPANDING.version


async def test_a_migration_that_waits_for_a_lock_is_tried_again(tmp_path: Path) -> None:
    async with (
        open_hub(tmp_path) as (_, location),
        await AsyncConnection[Any].connect(location) as other,
    ):
        await other.execute("LOCK TABLE feeds IN ACCESS SHARE MODE")
        migrating = asyncio.create_task(migrate(location, EXPANDING, tries=20))
        await until_lock_is(other, is_waited_for=True)
        await until_lock_is(other, is_waited_for=False)
        await other.rollback()

        assert await migrating == EXPANDING.version


async def test_a_migration_in_a_deadlock_is_tried_again(tmp_path: Path) -> None:
    async with (
        open_hub(tmp_path) as (_, location),
        await AsyncConnection[Any].connect(location) as other,
    ):
        await other.execute("LOCK TABLE feeds IN ACCESS SHARE MODE")
        migrating = asyncio.create_task(migrate(location, LOCKING, tries=20))
        await until_lock_is(other, is_waited_for=True)
        await other.execute("LOCK TABLE tokens")
        await other.rollback()

        assert await migrating == LOCKING.version


async def until_lock_is(other: AsyncConnection[Any], *, is_waited_for: bool) -> None:
    async def is_as_wanted() -> bool:
        row = await (await other.execute(WAITING_FOR_LOCK)).fetchone()
        return (row is not None) == is_waited_for

    await eventually(is_as_wanted)


async def test_without_leave_to_migrate_nothing_changes(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as (_, location):
        with psycopg.connect(location, autocommit=True) as server:
            for found, said in (
                (FORMER_FUNCTIONS, "its functions are of another version of Fanfare"),
                ("UPDATE fanfare_schema SET version = 64", "version 64 is older than"),
            ):
                server.execute(found)
                before = server.execute(CATALOG).fetchall()

                with pytest.raises(DatabaseOutdated, match=f"{said}.*fanfare db migr"):
                    await open_without_leave(location, tmp_path)

                assert server.execute(CATALOG).fetchall() == before


async def test_functions_are_replaced_before_the_schema_is_contracted(
    tmp_path: Path,
) -> None:
    async with open_hub(tmp_path) as (hub, location):
        await hub.membership.join(NewNode(name="former"))
        with psycopg.connect(location, autocommit=True) as server:
            server.execute(FORMER_FUNCTIONS)
            await migrate(location, EXPANDING, CONTRACTING)
            found = server.execute(
                "SELECT version, program, functions = 'former' FROM fanfare_schema"
            ).fetchone()

    assert found == (EXPANDING.version, CONTRACTING.version, False)


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
