from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from storage.sqlite import SqliteStorage, open_database
from tests.support.fake_api import FakeApi

Fanfare = Callable[..., Result]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database that no hub is using."""

    async def make() -> None:
        storage = await open_database(path)
        await storage.close()

    path = tmp_path / "data" / "hub.db"
    asyncio.run(make())
    return path


@pytest.fixture
def in_use(database: Path) -> Iterator[None]:
    """The database is open, as by a running hub."""
    with asyncio.Runner() as runner:
        storage: SqliteStorage = runner.run(open_database(database))
        yield
        runner.run(storage.close())


@pytest.mark.parametrize("verb", [["backup", "x"], ["migrate"], ["status"]])
def test_without_a_database_there_is_nothing_to_do(
    alone: Fanfare, verb: list[str]
) -> None:
    result = alone("db", *verb)
    assert result.exit_code == 1
    assert "there is no database" in result.stderr


@pytest.mark.usefixtures("database")
def test_a_database_at_rest_is_described(alone: Fanfare) -> None:
    result = alone("db", "status")
    assert result.exit_code == 0
    assert "in use    no" in result.stdout
    assert "engine    sqlite" in result.stdout


@pytest.mark.usefixtures("in_use")
def test_a_database_in_use_is_described_by_its_hub(
    fanfare: Fanfare, api: FakeApi
) -> None:
    api.answers["GET /api/health"] = (200, {"database": {"head": 7}})
    result = fanfare("db", "status")
    assert "head    7" in result.stdout
    assert f"in use  by the hub at {api.url}" in result.stdout


@pytest.mark.usefixtures("database")
def test_a_database_at_rest_is_copied_once(alone: Fanfare, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    assert alone("db", "backup", str(target)).stdout == f"backed up to {target}\n"
    assert target.exists()
    again = alone("db", "backup", str(target))
    assert again.exit_code == 1
    assert "exists already" in again.stderr


@pytest.mark.usefixtures("in_use")
def test_a_database_in_use_is_copied_by_its_hub(
    fanfare: Fanfare, api: FakeApi, tmp_path: Path
) -> None:
    target = str(tmp_path / "copy.db")
    api.answers["POST /api/db/backup"] = (201, {"file": target})
    assert fanfare("db", "backup", target).exit_code == 0
    assert api.requests == [("POST /api/db/backup", {"destination": target})]


@pytest.mark.usefixtures("database")
def test_a_migration_says_where_it_ended(alone: Fanfare) -> None:
    assert "is at schema version" in alone("db", "migrate").stdout


@pytest.mark.usefixtures("in_use")
def test_a_migration_waits_for_the_hub_to_stop(alone: Fanfare) -> None:
    result = alone("db", "migrate")
    assert result.exit_code == 1
    assert "stop it first" in result.stderr


def test_a_file_that_is_no_database_is_a_failure(
    alone: Fanfare, tmp_path: Path
) -> None:
    path = tmp_path / "data" / "hub.db"
    path.parent.mkdir()
    path.write_text("this is no database at all" * 100)
    assert alone("db", "status").exit_code == 1


@pytest.mark.usefixtures("in_use")
def test_a_database_in_use_by_no_hub_is_not_copied(
    alone: Fanfare, tmp_path: Path
) -> None:
    """As while another backup, or a migration, has it."""
    (tmp_path / "data" / "admin-token").write_text("token")
    result = alone("db", "backup", str(tmp_path / "copy.db"))
    assert result.exit_code == 3
    assert "is using this database, but no hub runs on" in result.stderr
    assert not (tmp_path / "copy.db").exists()


def test_a_name_no_file_can_have_is_a_failure(alone: Fanfare, tmp_path: Path) -> None:
    result = alone("db", "backup", str(tmp_path / ("n" * 300)))
    assert result.exit_code == 1
    assert "is no file name" in result.stderr
