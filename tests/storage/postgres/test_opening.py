"""What an opening tells of a database that cannot be used, and what it makes anew."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from storage.database_url import open_storage
from storage.errors import (
    DatabaseLocked,
    DatabaseOutdated,
    DatabaseTooNew,
    DatabaseUnusable,
)
from storage.postgres import open_database
from storage.postgres.opening import read_location
from storage.postgres.schema import latest_schema
from storage.secrets import create_key
from tests.support.postgres_server import PostgresServer, other_user, shared_server

TABLES = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"


@pytest.fixture(scope="module")
def server() -> PostgresServer:
    return shared_server()


@pytest.fixture
def location(server: PostgresServer) -> Iterator[str]:
    with server.database() as url:
        yield url


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return tmp_path / "hub.key"


def execute(location: str, *statements: str) -> list[Any]:
    with psycopg.connect(location, autocommit=True) as connection:
        for each in statements:
            found = connection.execute(each)
        return found.fetchall() if found.description else []


async def epoch_of(location: str, key: Path) -> str:
    storage = await open_database(location, key)
    try:
        return (await storage.status()).epoch
    finally:
        await storage.close()


async def refusal(location: str, key: Path, **more: bool) -> str:
    with pytest.raises(DatabaseUnusable) as raised:
        await open_database(location, key, **more)
    return str(raised.value)


async def test_an_empty_database_gets_its_tables_and_an_epoch(
    location: str, key: Path
) -> None:
    storage = await open_database(location, key)
    await storage.check()
    status = await storage.status()
    await storage.close()

    assert (status.engine, status.version) == ("postgresql", latest_schema())
    assert status.epoch
    assert status.size_bytes > 0
    assert await epoch_of(location, key) == status.epoch


async def test_a_copy_begins_a_new_epoch(
    server: PostgresServer, location: str, key: Path
) -> None:
    former = await epoch_of(location, key)

    name = location.rpartition("/test")[2].partition("?")[0]
    with server.database(f"test{name}") as copy:
        assert await epoch_of(copy, key) != former


async def test_without_leave_to_migrate_nothing_is_made(
    location: str, key: Path
) -> None:
    with pytest.raises(DatabaseOutdated, match="fanfare db migrate"):
        await open_database(location, key, migrate=False)

    assert execute(location, TABLES) == [(0,)]


async def test_a_newer_version_of_the_schema_is_refused(
    location: str, key: Path
) -> None:
    await epoch_of(location, key)
    execute(location, "UPDATE fanfare_schema SET version = 9999, oldest_program = 9999")

    with pytest.raises(DatabaseTooNew, match="upgrade Fanfare"):
        await open_database(location, key)


async def test_hubs_that_start_at_once_migrate_once(location: str, key: Path) -> None:
    create_key(key)

    epochs = await asyncio.gather(*(epoch_of(location, key) for _ in range(4)))

    assert len(set(epochs)) == 1


async def test_tables_of_another_program_are_left_alone(
    location: str, key: Path
) -> None:
    execute(location, "CREATE TABLE feeds (id int)")

    assert "tables of another program (feeds)" in await refusal(location, key)


async def test_a_schema_of_its_own_can_be_named(location: str, key: Path) -> None:
    execute(location, "CREATE TABLE feeds (id int)", "CREATE SCHEMA fanfare")
    own = f"{location}&options=-csearch_path%3Dfanfare"

    assert await epoch_of(own, key)
    missing = f"{location}&options=-csearch_path%3Dmissing"
    assert "search_path does not exist" in await refusal(missing, key)


async def test_a_server_that_is_not_there_is_told(key: Path) -> None:
    said = await refusal("postgresql://me:hidden@127.0.0.1:9/hub", key)

    assert said.startswith("postgresql://me@127.0.0.1:9/hub: ")
    assert "the server cannot be used" in said
    assert "hidden" not in said


async def test_a_database_that_is_not_there_is_told(
    server: PostgresServer, key: Path
) -> None:
    said = await refusal(server.location("missing"), key)

    assert 'database "missing" does not exist' in said


async def test_a_database_that_may_not_be_written_is_told(
    server: PostgresServer, location: str, key: Path
) -> None:
    name = location.rpartition("/test")[2].partition("?")[0]
    execute(
        server.url, f"ALTER DATABASE test{name} SET default_transaction_read_only = on"
    )

    assert "read-only" in await refusal(location, key)


async def test_a_server_that_is_too_old_is_told(
    location: str, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.postgres.opening.LEAST_SERVER", 990_000)
    with psycopg.connect(location) as connection:
        version = connection.info.server_version // 10_000

    said = await refusal(location, key)

    assert f"the server is PostgreSQL {version}; Fanfare needs" in said


async def test_another_encoding_is_refused(server: PostgresServer, key: Path) -> None:
    execute(
        server.url,
        "CREATE DATABASE narrow TEMPLATE template0 ENCODING latin1 LOCALE 'C'",
    )
    try:
        said = await refusal(server.location("narrow"), key)
    finally:
        server.drop("narrow")

    assert "its encoding is LATIN1; Fanfare needs UTF8" in said


async def test_a_user_without_the_right_to_make_tables_is_told(
    location: str, key: Path
) -> None:
    with other_user(location, "stranger") as strange:
        assert "the user lacks a right" in await refusal(strange, key)


async def test_a_user_without_the_right_to_write_tables_is_told(
    location: str, key: Path
) -> None:
    await epoch_of(location, key)
    with other_user(location, "reader") as strange:
        execute(location, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
        said = await refusal(strange, key)

    assert "the user 'reader' may not read and write the table accounts" in said


async def test_a_user_with_rights_on_all_tables_can_open_it(
    location: str, key: Path
) -> None:
    epoch = await epoch_of(location, key)
    with other_user(location, "helper") as helper:
        execute(location, "GRANT ALL ON ALL TABLES IN SCHEMA public TO helper")

        assert await epoch_of(helper, key) == epoch


async def test_the_key_belongs_to_the_database(
    location: str, key: Path, tmp_path: Path
) -> None:
    await epoch_of(location, key)
    other = tmp_path / "other.key"

    assert f"its key file {other} is missing" in await refusal(location, other)
    other.write_bytes(b"A" * 43 + b"=\n")
    assert f"{other} belongs to another database" in await refusal(location, other)


async def test_the_password_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("a b&c\n")

    settings = read_location(
        f"postgresql://me@db.example/hub?password_file={file}&sslmode=verify-full"
        "&pgbouncer=true&application_name=a%20b+c"
    )

    assert settings.conninfo()["password"] == "a b&c"
    assert settings.conninfo()["sslmode"] == "verify-full"
    assert settings.conninfo()["application_name"] == "a b+c"
    assert settings.conninfo()["target_session_attrs"] == "read-write"
    assert settings.is_pooled
    assert "options" not in settings.conninfo()


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("password_file=/missing", "password_file: "),
        ("pgbouncer=maybe", 'pgbouncer: expected "true" or "false", not \'maybe\''),
        ("sslmod=require", "not a URL of PostgreSQL: "),
    ],
)
async def test_a_parameter_that_cannot_be_used_is_named(query: str, said: str) -> None:
    with pytest.raises(DatabaseUnusable) as raised:
        read_location(f"postgresql://me:hidden@db.example/hub?{query}")

    assert f"postgresql://me@db.example/hub: {said}" in str(raised.value)
    assert "hidden" not in str(raised.value)


async def test_a_setting_opens_it_for_one_process(
    location: str, tmp_path: Path
) -> None:
    local = tmp_path / "state" / "fanfare"
    storage = await open_storage(location, local)
    with pytest.raises(DatabaseLocked, match="another hub"):
        await open_storage(location, local)
    await storage.close()

    assert {each.name for each in local.parent.iterdir()} == {
        "fanfare",
        "fanfare.key",
        "fanfare.lock",
    }
    assert local.parent.stat().st_mode & 0o077 == 0
    await (await open_storage(location, local)).close()


async def test_functions_that_are_not_this_programs_are_replaced(
    location: str, key: Path
) -> None:
    await epoch_of(location, key)
    execute(
        location,
        "DROP FUNCTION require_term",
        "UPDATE fanfare_schema SET functions = 'of another version'",
    )

    await epoch_of(location, key)

    assert execute(location, "SELECT require_term(0)") == [("",)]


async def test_damage_is_told(location: str, key: Path) -> None:
    storage = await open_database(location, key)
    assert await storage.find_damage() == ()

    execute(
        location,
        "UPDATE log_head SET head = 3",
        "INSERT INTO fanouts VALUES (2, 1, 0)",
    )

    assert await storage.find_damage() == (
        "the log lacks 3 of its records",
        "1 chunks or fan-outs are of records that the log lacks",
    )
    await storage.close()


async def test_behind_pgbouncer_nothing_is_prepared(location: str, key: Path) -> None:
    storage = await open_database(f"{location}&pgbouncer=true", key)
    for _ in range(20):
        await storage.check()
    rows = await storage._connections.all("SELECT count(*) FROM pg_prepared_statements")
    await storage.close()

    assert rows == [(0,)]


def test_without_the_driver_it_is_told_what_to_install() -> None:
    program = (
        "import asyncio, sys; sys.modules['psycopg'] = None\n"
        "from storage.postgres import open_database\n"
        "asyncio.run(open_database('postgresql://', None))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert "pip install 'fanfare-hub[postgres]'" in ended.stderr.splitlines()[-1]
