"""Scheduled backups are known by their names, and only they are ever removed."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hub.services.backup_directory import ABANDONED_SECONDS, BackupDirectory

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
HOUR = 3_600.0


@pytest.fixture
def directory(tmp_path: Path) -> BackupDirectory:
    return BackupDirectory(tmp_path, Path("data/hub.db"), every=HOUR, kept=2)


def write(directory: BackupDirectory, *hours_ago: float) -> None:
    for each in hours_ago:
        path = directory.new_file(NOW - timedelta(hours=each))
        path.write_bytes(b"backup")
        path.with_name(f"{path.name}.key").write_bytes(b"key")


def test_a_backup_is_called_after_its_database_and_time(
    directory: BackupDirectory,
) -> None:
    assert directory.new_file(NOW).name == "hub-20261123T120000Z.db"


@pytest.mark.parametrize(
    ("hours_ago", "seconds"),
    [((), 0.0), ((5, 0.25), 0.75 * HOUR), ((1,), 0.0), ((3,), 0.0), ((-5,), 0.0)],
)
def test_the_next_one_is_due_after_the_newest_that_is_not_of_the_future(
    directory: BackupDirectory, hours_ago: tuple[float, ...], seconds: float
) -> None:
    write(directory, *hours_ago)
    assert directory.due_in(NOW) == seconds


def test_all_but_the_newest_go_with_their_keys(directory: BackupDirectory) -> None:
    write(directory, 3, 1, 2, 0)
    others = ["hub.db", "hub-20200101T000000Z.db.old", "other-20200101T000000Z.db"]
    for name in others:
        (directory.path / name).touch()

    removed = directory.rotate()

    assert removed == [directory.new_file(NOW - timedelta(hours=h)) for h in (2, 3)]
    kept = [directory.new_file(NOW - timedelta(hours=h)).name for h in (0, 1)]
    assert {each.name for each in directory.path.iterdir()} == {
        *others,
        *kept,
        *(f"{name}.key" for name in kept),
    }
    assert [each.bytes for each in directory.files()] == [6, 6]


def test_a_missing_directory_is_made_for_its_owner_alone(
    directory: BackupDirectory,
) -> None:
    directory.path = directory.path / "backups"

    assert directory.due_in(NOW) == 0
    assert directory.path.stat().st_mode & 0o777 == 0o700


def test_what_a_hub_that_died_left_unfinished_goes(directory: BackupDirectory) -> None:
    old, young = (
        directory.path / f"hub-2026112{day}T000000Z.db.partial" for day in (2, 3)
    )
    long_ago = young.touch() or old.touch() or old.stat().st_mtime - ABANDONED_SECONDS
    os.utime(old, (long_ago - 1, long_ago - 1))

    directory.rotate()

    assert [each.name for each in directory.path.iterdir()] == [young.name]
