"""A disk that is lost at any moment, fills up, fails, is write-protected, and gives
what it was asked for late, or very late.

It is real SQLite on real files. A crash leaves what was in the files at that moment,
with or without the remains of a write that was cut off; the next process finds a copy.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from random import Random
from shutil import copyfile
from typing import Any

from storage.sqlite import SqliteStorage, open_database
from storage.sqlite.connection_threads import (
    ConnectionThreads,
    Read,
    fetch_each,
    read_only,
)
from tests.simulation.loop import VirtualLoop

PAGES_AT_ALL = 1 << 30
LONGEST_WRITE = 0.02
LONGEST_READ = 0.005
"""Seconds, usually; now and then ten times as long."""
SLOWNESS = 20.0
"""What a slow disk takes longer."""


_KEPT = ("hub.db", "hub.db-wal", "hub.db.key")


@cache
def empty_database() -> dict[str, bytes]:
    """The files of one; made once, for it is the same every time."""

    async def make(directory: Path) -> None:
        disk = Disk(directory, Random(0))
        await (await disk.open()).close()
        disk.close()

    with tempfile.TemporaryDirectory() as name:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(make(Path(name)))
        made = [Path(name) / each for each in _KEPT]
        return {each.name: each.read_bytes() for each in made if each.exists()}


class Disk:
    """What one process has of it; `crash` gives the next one's."""

    def __init__(
        self, directory: Path, random: Random, *, is_forgetful: bool = False
    ) -> None:
        """``is_forgetful``: what it says is written may not be there after a crash."""
        self.is_forgetful = is_forgetful
        self.is_lost = False
        self.passing: Callable[[str], None] = lambda place: None
        """Called before and after each group of writes, with the name of the place."""
        self._directory = directory
        self._random = random
        self._connections: list[sqlite3.Connection] = []
        self._writing: _Failing | None = None
        self._slowness = 1.0
        self._reading: sqlite3.Connection | None = None
        directory.mkdir(parents=True, exist_ok=True)

    def format(self, files: Mapping[str, bytes]) -> None:
        for name, content in files.items():
            (self._directory / name).write_bytes(content)

    @property
    def database(self) -> Path:
        return self._directory / "hub.db"

    async def open(self) -> SqliteStorage:
        return await open_database(
            self.database,
            threads=ConnectionThreads(
                worker=lambda: _LoopWorker(self),
                open_for_writing=self._open_for_writing,
                open_for_reading=self._open_for_reading,
            ),
        )

    def delay(self, longest: float) -> float:
        seconds = self._random.uniform(0, longest * self._slowness)
        return 10 * seconds if self._random.random() < 0.02 else seconds

    def fill(self) -> None:
        """From now on nothing can grow."""
        self._limit(self._pages())

    def fail(self) -> None:
        """From now on nothing can be committed: EIO."""
        if self._writing is not None:
            self._writing.is_failing = True

    def protect(self) -> None:
        """From now on nothing can be written: EROFS."""
        self._ask("PRAGMA query_only = 1")

    def slow_down(self) -> None:
        self._slowness = SLOWNESS

    def clear(self) -> None:
        self._slowness = 1.0
        if self._writing is not None:
            self._writing.is_failing = False
        self._ask("PRAGMA query_only = 0")
        self._limit(PAGES_AT_ALL)

    def crash(self, directory: Path, random: Random) -> Disk:
        """The process is gone. What the next one finds, in that directory."""
        self.is_lost = True
        after = Disk(directory, random, is_forgetful=self.is_forgetful)
        for name in _KEPT:
            is_kept = not (self.is_forgetful and name == "hub.db-wal")
            if is_kept and (self._directory / name).exists():
                copyfile(self._directory / name, directory / name)
        if self._random.random() < 0.5:
            self._tear(directory / "hub.db-wal")
        self.close()
        return after

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def _tear(self, wal: Path) -> None:
        """A write that was cut off: part of a frame that was never finished."""
        with wal.open("ab") as file:
            file.write(self._random.randbytes(self._random.randint(1, 6_000)))

    def _pages(self) -> int:
        assert self._writing is not None
        ((pages,),) = self._writing.execute("PRAGMA page_count").fetchall()
        return int(pages)

    def _limit(self, pages: int) -> None:
        self._ask(f"PRAGMA max_page_count = {pages}")

    def _ask(self, pragma: str) -> None:
        if self._writing is not None and not self.is_lost:
            self._writing.execute(pragma).fetchall()

    def _open_for_writing(self, path: Path) -> sqlite3.Connection:
        self._writing = sqlite3.connect(
            path,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            factory=_Failing,
        )
        self._connections.append(self._writing)
        return self._writing

    async def _open_for_reading(self, path: Path) -> _LoopReader:
        """All read by the same one: reads take their time, but none has two steps."""
        if self._reading is None:
            self._reading = sqlite3.connect(
                read_only(path),
                uri=True,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )
            self._connections.append(self._reading)
        return _LoopReader(self, self._reading)


class _Failing(sqlite3.Connection):
    """Commits nothing while it fails."""

    is_failing = False

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if self.is_failing and sql == "COMMIT":
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR
            raise error
        return super().execute(sql, *parameters)


class _LoopWorker:
    """Does the writer's work in the loop, a little later."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._is_due = False
        self._work: Callable[[], bool] = lambda: False

    def start(self, work: Callable[[], bool]) -> None:
        self._work = work

    def wake(self) -> None:
        if not self._is_due:
            self._is_due = True
            loop = asyncio.get_running_loop()
            loop.call_later(self._disk.delay(LONGEST_WRITE), self._turn)

    def _turn(self) -> None:
        self._is_due = False
        self._disk.passing("before-write")
        if self._disk.is_lost:
            return
        self._work()
        self._disk.passing("after-write")


class _LoopReader:
    def __init__(self, disk: Disk, connection: sqlite3.Connection) -> None:
        self._disk = disk
        self._connection = connection

    async def execute_fetchall(self, sql: str, parameters: Any = None) -> Iterable[Any]:
        return (await self.fetch_each([(sql, parameters or ())]))[0]

    async def fetch_each(self, reads: Iterable[Read]) -> list[list[Any]]:
        await asyncio.sleep(self._disk.delay(LONGEST_READ))
        if self._disk.is_lost:
            await asyncio.Event().wait()
        return fetch_each(self._connection, reads)

    async def close(self) -> None:
        """The disk closes what its readers share."""
