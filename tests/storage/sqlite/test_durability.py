"""Killed at any moment, nothing that was acknowledged is lost."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from storage.sqlite import open_database

ROOT = Path(__file__).parents[3]
KILLS = 10
"""`scripts/soak commits` makes a hundred."""

DIE_IN_A_MIGRATION = """
import os, signal, sys
from pathlib import Path
from storage.sqlite.connection_threads import open_for_writing, prepare_for_writing
from storage.sqlite.schema import Migration, run, schema_version

connection = open_for_writing(Path(sys.argv[1]))
prepare_for_writing(connection)
connection.create_function("die", 0, lambda: os.kill(os.getpid(), signal.SIGKILL))
script = "CREATE TABLE halfway (id); INSERT INTO halfway SELECT die();"
version = schema_version(connection) + 1
run(connection, Migration(version=version, name="", script=script))
"""


def test_no_acknowledged_commit_is_lost_by_a_kill() -> None:
    """In a process of its own, without threads, for it forks those that die."""
    scene = [sys.executable, "-m", "tests.soak.commits", "--kills", str(KILLS)]
    told = subprocess.run(
        scene, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert f"{KILLS} kills" in told.stdout


def test_a_migration_that_was_killed_has_not_begun(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"
    version = asyncio.run(_version(path))

    died = subprocess.run(
        [sys.executable, "-c", DIE_IN_A_MIGRATION, str(path)], timeout=120, check=False
    )

    assert died.returncode == -signal.SIGKILL
    assert asyncio.run(_version(path)) == version
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
    assert ("halfway",) not in tables


async def _version(path: Path) -> int:
    storage = await open_database(path)
    status = await storage.status()
    await storage.close()
    return status.version
