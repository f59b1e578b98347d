"""Processes that commit to one database as fast as they can, and are killed one by one.

What a process was told to be durable is there afterwards, the log has no gap, and each
record has its entry.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from storage.sqlite import open_database
from tests.support.documents import an_entry
from tests.support.storage_scene import Scene, fetch, record, stored_at

CALLERS = 20
LONGEST_LIFE = 0.3
"""Most seconds from the first commit of a process until it is killed."""
CHECK_EVERY = 10
"""Kills between two checks of the whole file, which take longer as it grows."""


@dataclass(slots=True)
class Outcome:
    kills: int = 0
    acknowledged: int = 0
    stored: int = 0
    complaints: list[str] = field(default_factory=list)


def kill_in_commits(path: Path, kills: int, seed: int) -> Outcome:
    """Kill many processes in their commits; it forks, so there must be no threads."""
    moment, outcome = random.Random(seed), Outcome()
    for run in range(1, kills + 1):
        told = _live_and_die(path, run, moment.uniform(0, LONGEST_LIFE))
        outcome.kills += 1
        outcome.acknowledged += len(told)
        _judge(path, run, told, outcome)
    return outcome


def _live_and_die(path: Path, run: int, seconds: float) -> list[int]:
    """The positions that one process reported as committed before it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reading)
            asyncio.run(_commit(path, run, writing))
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        first = pipe.readline()
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        told = first + pipe.read()
    os.waitpid(child, 0)
    return [int(line) for line in told.splitlines(keepends=True) if line[-1:] == b"\n"]


async def _commit(path: Path, run: int, told: int) -> None:
    storage = await open_database(path)
    feed = await Scene(storage).add_feed()

    async def keep_committing(caller: int) -> None:
        for number in range(100_000):
            key = f"{run}/{caller}/{number}"
            entries = (an_entry(key, title="x" * 500),)
            commit = fetch(feed, entries=entries, records=(record(key),))
            (position,) = await stored_at(storage.log.commit(commit))
            os.write(told, b"%d\n" % position)

    async with asyncio.TaskGroup() as tasks:
        for caller in range(CALLERS):
            tasks.create_task(keep_committing(caller))


def _judge(path: Path, run: int, told: list[int], outcome: Outcome) -> None:
    with closing(sqlite3.connect(path)) as connection:
        (head,) = connection.execute("SELECT head FROM meta").fetchone()
        first, last, count = connection.execute(
            "SELECT min(position), max(position), count(*) FROM records"
        ).fetchone()
        (entries,) = connection.execute("SELECT count(*) FROM entries").fetchone()
        whole = run % CHECK_EVERY or connection.execute(
            "PRAGMA integrity_check"
        ).fetchone() == ("ok",)
    outcome.stored = count
    for is_broken, complaint in (
        (not told, "nothing was acknowledged"),
        (max(told, default=0) > head, "an acknowledged commit is lost"),
        ((first, last, count) != (1, head, head), "the log has a gap"),
        (entries != head, "records and entries are not as many"),
        (not whole, "the file is not whole"),
    ):
        if is_broken:
            outcome.complaints.append(f"kill {run}: {complaint}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/soak commits", description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="fanfare-commits-") as directory:
        outcome = kill_in_commits(Path(directory) / "hub.db", asked.kills, asked.seed)
    print(f"{outcome.kills} kills, {outcome.acknowledged:,} commits acknowledged,")
    print(f"{outcome.stored:,} stored")
    print("\n".join(f"BROKEN  {each}" for each in outcome.complaints) or "none lost")
    return 1 if outcome.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
