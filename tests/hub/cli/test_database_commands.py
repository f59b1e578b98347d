from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from hub.cli.database_commands import describe_migration
from hub.core.byte_sizes import byte_size
from storage.records import DatabaseStatus, Position
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


@pytest.mark.parametrize(
    "verb", [["backup", "x"], ["check"], ["compact"], ["migrate"], ["status"]]
)
def test_without_a_database_there_is_nothing_to_do(
    alone: Fanfare, verb: list[str]
) -> None:
    result = alone("db", *verb)
    assert result.exit_code == 1
    assert "no database at" in result.stderr


@pytest.mark.usefixtures("database")
def test_a_database_at_rest_is_described(alone: Fanfare) -> None:
    result = alone("db", "status")
    assert result.exit_code == 0
    assert "in use      no" in result.stdout
    assert "engine      sqlite" in result.stdout


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
    told = alone("db", "backup", str(target)).stdout
    size = byte_size(target.stat().st_size)
    assert told == f"backed up to {target} ({size})\n"
    assert target.exists()
    again = alone("db", "backup", str(target))
    assert again.exit_code == 1
    assert "exists already" in again.stderr


def job(file: str = "/copy.db", **changes: object) -> dict[str, object]:
    """A backup that is made, as the hub tells of it."""
    done = {
        "kind": "backup",
        "file": file,
        "started": "2026-01-01T00:00:00Z",
        "finished": "2026-01-01T00:05:00Z",
        "done": 4_000,
        "total": 4_000,
        "error": "",
        "findings": [],
    }
    return {**done, **changes}


def jobs(
    running: dict[str, object] | None = None, last: dict[str, object] | None = None
) -> dict[str, object]:
    found = {"running": running, "last_backup": last, "last_check": last}
    return {**found, "schedule": None, "backups": []}


@pytest.mark.usefixtures("in_use")
def test_a_database_in_use_is_copied_by_its_hub(
    fanfare: Fanfare, api: FakeApi, tmp_path: Path
) -> None:
    target = str(tmp_path / "copy.db")
    api.answers["POST /api/db/backup"] = (201, job(target))
    told = fanfare("db", "backup", target)
    assert (told.exit_code, told.stdout) == (0, f"backed up to {target} (4 kB)\n")
    expected = [("POST /api/db/backup?wait=1", {"destination": target})]
    assert api.requests == expected


@pytest.mark.usefixtures("in_use")
def test_a_backup_that_takes_long_is_waited_for(fanfare: Fanfare, api: FakeApi) -> None:
    """Whatever the hub does between two looks, also another backup after it."""
    going_on = job(finished=None, done=1_000)
    states = [jobs(going_on), jobs(last=job("/former.db", error="no disk"))]
    states[1]["running"] = job(finished=None, done=3_000)
    states.append(jobs(last=job()))
    api.answers["POST /api/db/backup"] = (202, going_on)
    api.answers["GET /api/db/jobs"] = (200, lambda _body: states.pop(0))

    told = fanfare("db", "backup", "--json")

    assert json.loads(told.stdout) == {"file": "/copy.db", "bytes": 4_000}
    assert api.requests[0] == ("POST /api/db/backup?wait=1", {})
    assert states == []


@pytest.mark.usefixtures("in_use")
@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (jobs(last=job(error="no disk")), "no disk"),
        (jobs(last=job("/other.db")), "interrupted: the hub was restarted"),
    ],
)
def test_a_backup_that_was_not_made_is_a_failure(
    fanfare: Fanfare, api: FakeApi, found: dict[str, object], reason: str
) -> None:
    api.answers["POST /api/db/backup"] = (202, job(finished=None))
    api.answers["GET /api/db/jobs"] = (200, found)
    told = fanfare("db", "backup")
    assert told.exit_code
    assert reason in told.stderr


@pytest.mark.usefixtures("in_use")
def test_a_backup_that_is_there_was_made_whatever_became_of_the_hub(
    fanfare: Fanfare, api: FakeApi, tmp_path: Path
) -> None:
    target = tmp_path / "copy.db"
    api.answers["POST /api/db/backup"] = (202, job(str(target), finished=None))

    def made(_body: object) -> dict[str, object]:
        target.write_bytes(b"backup")
        return jobs()

    api.answers["GET /api/db/jobs"] = (200, made)
    assert fanfare("db", "backup", str(target)).exit_code == 0


@pytest.mark.usefixtures("database")
def test_without_a_hub_a_backup_needs_a_name(alone: Fanfare) -> None:
    told = alone("db", "backup")
    assert told.exit_code == 2
    assert "name the file" in told.stderr


@pytest.mark.usefixtures("in_use")
def test_damage_that_the_hub_finds_is_a_failure(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["POST /api/db/check"] = (
        200,
        job(kind="check", findings=["page 3 is torn"]),
    )
    told = fanfare("db", "check")
    assert told.exit_code == 1
    assert "is damaged" in told.stderr
    assert "page 3 is torn" in told.stderr


def test_a_database_and_a_backup_at_rest_are_checked(
    alone: Fanfare, database: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    alone("db", "backup", str(copy))
    assert alone("db", "check").stdout == f"{database} is intact\n"
    assert alone("db", "check", str(copy)).stdout == f"{copy} is intact\n"
    copy.with_name("copy.db.key").unlink()
    told = alone("db", "check", str(copy), "--json")
    assert told.exit_code == 1
    assert json.loads(told.stdout) == {
        "file": str(copy),
        "findings": ["its key file copy.db.key is missing"],
    }


def test_a_backup_is_restored_and_the_former_database_kept(
    alone: Fanfare, database: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    alone("db", "backup", str(copy))
    told = alone("db", "restore", str(copy))
    assert told.exit_code == 0
    [former] = database.parent.glob("hub.db.before-restore-*Z")
    assert str(former) in told.stdout
    assert alone("db", "check").exit_code == 0
    database.unlink()
    again = json.loads(alone("db", "restore", str(copy), "--json").stdout)
    assert again == {"file": str(database), "former": None}


def test_a_database_is_compacted(alone: Fanfare, database: Path) -> None:
    told = json.loads(alone("db", "compact", "--json").stdout)
    assert told["bytes_after"] == database.stat().st_size
    # Nothing of a new database is free, and the pages are laid out anew.
    assert told["bytes_after"] <= 1.1 * told["bytes_before"]
    assert f"{database}: " in alone("db", "compact").stdout


@pytest.mark.usefixtures("in_use")
@pytest.mark.parametrize("verb", [["restore", "{copy}"], ["compact"]])
def test_what_replaces_the_database_waits_for_the_hub_to_stop(
    alone: Fanfare, verb: list[str], tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"

    async def make_copy() -> None:
        storage = await open_database(tmp_path / "other.db")
        await storage.backup(copy)
        await storage.close()

    asyncio.run(make_copy())
    told = alone("db", *(word.format(copy=copy) for word in verb))
    assert told.exit_code == 1
    assert "stop it first" in told.stderr


def test_scheduled_backups_are_listed(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["GET /api/db/jobs"] = (200, jobs())
    assert "set FANFARE_BACKUP_DIR" in fanfare("db", "backups").stdout
    scheduled = {
        **jobs(last=job(error="no disk")),
        "schedule": {"directory": "/backups", "every": 86_400.0, "kept": 7},
        "backups": [{"file": "/backups/a", "at": "2026-01-01T00:00:00Z", "bytes": 9}],
    }
    api.answers["GET /api/db/jobs"] = (200, scheduled)
    told = fanfare("db", "backups")
    schedule = "a backup every 1 d in /backups; the newest 7 are kept\n"
    assert told.stdout.startswith(schedule)
    assert "/backups/a" in told.stdout
    assert "the last backup failed: no disk" in told.stderr


@pytest.mark.usefixtures("database")
def test_a_migration_says_where_it_ended(alone: Fanfare) -> None:
    assert "is at schema version" in alone("db", "migrate").stdout


def test_a_migration_beside_a_hub_of_a_former_version_says_what_is_left() -> None:
    found = DatabaseStatus(
        engine="postgresql",
        location="postgresql://db/hub",
        version=72,
        latest=73,
        epoch="e",
        log_end=Position(0),
        size_bytes=1,
    )

    told = describe_migration(found)

    assert told.startswith("postgresql://db/hub is at schema version 72, which")
    assert told.endswith("run this again once they have ended")


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
    assert "is not a valid file name" in result.stderr


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        ("db backup x.db", "back it up with pg_basebackup and archived WAL"),
        ("db backups", "back it up with pg_basebackup and archived WAL"),
        ("db restore x.db", "restore it with the tools of the server"),
        ("db compact", "autovacuum keeps free pages for what comes next"),
        ("simulate --history", "this is for SQLite"),
        ("db status", "the server cannot be used"),
    ],
)
def test_what_is_for_files_says_what_is_done_on_a_server(
    alone: Fanfare, tmp_path: Path, verb: str, said: str
) -> None:
    result = alone(
        *verb.split(),
        FANFARE_DATABASE="postgresql://ann:hidden@127.0.0.1:9/hub",
        FANFARE_STATE_DIR=str(tmp_path / "state"),
    )

    assert result.exit_code == 1
    assert "postgresql://ann@127.0.0.1:9/hub" in result.stderr
    assert said in result.stderr
    assert "hidden" not in result.stderr


def test_a_copy_says_what_it_made_and_what_is_to_be_taken_along(
    alone: Fanfare, database: Path, tmp_path: Path
) -> None:
    token = database.with_name("admin-token")
    token.write_text("x")
    target = tmp_path / "there" / "copy.db"
    told = alone("db", "copy", str(database), str(target))
    assert told.exit_code == 0
    assert told.stderr.split() == ["copying", "making", "indexes", "checking"]
    first, *others = told.stdout.splitlines()
    assert first.startswith(f"copied {database} to {target}: 3 rows of 2 tables in ")
    assert others == [
        f"its key is {target}.key; keep a copy of that file",
        f"to keep the admin token, copy {token} to {target.with_name('admin-token')}",
        f"start the hub with FANFARE_DATABASE naming {target}, and none with {database}"
        " any more: both would go on with the same log",
    ]
    again = alone("db", "copy", str(database), str(target))
    assert again.exit_code == 1
    assert "no unfinished copy; name a new file" in again.stderr


def test_a_copy_for_programs(alone: Fanfare, database: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    told = alone("db", "copy", "--json", f"sqlite:{database}", str(target))
    assert json.loads(told.stdout) == {
        "from": str(database),
        "to": str(target),
        "rows": 3,
        "tables": 2,
        "key": f"{target}.key",
        "keeps_epoch": True,
    }


@pytest.mark.usefixtures("in_use")
def test_a_database_in_use_is_not_copied_to_another(
    alone: Fanfare, database: Path, tmp_path: Path
) -> None:
    result = alone("db", "copy", str(database), str(tmp_path / "copy.db"))
    assert result.exit_code == 1
    assert "is using this database; stop it first" in result.stderr
    assert "goes on" not in result.stderr


def test_what_names_no_database_is_wrong_usage(alone: Fanfare) -> None:
    result = alone("db", "copy", "mysql://localhost/x", "copy.db")
    assert result.exit_code == 2
    assert "expected a file, or postgresql://USER@HOST/DATABASE" in result.stderr


def test_a_copy_that_is_broken_off_says_that_it_goes_on(
    alone: Fanfare, database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.sqlite.backup.RESERVE_BYTES", 1 << 60)
    result = alone("db", "copy", str(database), str(tmp_path / "copy.db"))
    assert result.exit_code == 1
    assert "bytes left, and the copy takes" in result.stderr
    assert result.stderr.endswith("run the same command again, and it goes on\n")
