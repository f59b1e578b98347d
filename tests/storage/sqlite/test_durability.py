"""Killed at any moment, nothing that was acknowledged is lost."""

from __future__ import annotations

import asyncio
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from storage.sqlite import open_database

COMMIT_AND_TELL = """
import asyncio, sys
from pathlib import Path
from storage.records import EntryWrite
from storage.sqlite import open_database
from tests.support.storage_scene import Scene, fetch, record

async def main():
    storage = await open_database(Path(sys.argv[1]))
    feed = await Scene(storage).add_feed()
    async def keep_committing(caller):
        for number in range(100_000):
            key = f"{caller} {number}"
            entries = (EntryWrite(key=key, body=b"x" * 500),)
            commit = fetch(feed, entries=entries, records=(record(key),))
            (position,) = await storage.log.commit(commit)
            print(position, flush=True)
    async with asyncio.TaskGroup() as tasks:
        for caller in range(20):
            tasks.create_task(keep_committing(caller))

asyncio.run(main())
"""

DIE_IN_A_MIGRATION = """
import os, signal, sys
from pathlib import Path
from storage.sqlite.connections import open_for_writing, prepare_for_writing
from storage.sqlite.schema import Migration, run, schema_version

connection = open_for_writing(Path(sys.argv[1]))
prepare_for_writing(connection)
connection.create_function("die", 0, lambda: os.kill(os.getpid(), signal.SIGKILL))
script = "CREATE TABLE halfway (id); INSERT INTO halfway SELECT die();"
version = schema_version(connection) + 1
run(connection, Migration(version=version, name="", script=script))
"""


@pytest.mark.parametrize("seed", range(5))
def test_no_acknowledged_commit_is_lost_by_a_kill(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "hub.db"
    moment = random.Random(seed).uniform(0.0, 0.3)
    process = subprocess.Popen(
        [sys.executable, "-c", COMMIT_AND_TELL, str(path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    time.sleep(moment)
    process.send_signal(signal.SIGKILL)
    told, _ = process.communicate(timeout=60)
    acknowledged = [int(line) for line in (first + told).splitlines() if line]

    head, positions, entry_count = asyncio.run(_content(path))

    assert head >= max(acknowledged)
    assert positions == list(range(1, head + 1))
    assert entry_count == head
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


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


async def _content(path: Path) -> tuple[int, list[int], int]:
    """The head, the positions of all records, and the number of entries."""
    storage = await open_database(path)
    head = (await storage.log.head()).position
    kept = await storage.log.records(after=0, limit=100_000)
    entries = await storage.log.latest_entries(1, 100_000)
    await storage.close()
    return head, [each.position for each in kept], len(entries)


async def _version(path: Path) -> int:
    storage = await open_database(path)
    status = await storage.status()
    await storage.close()
    return status.version
