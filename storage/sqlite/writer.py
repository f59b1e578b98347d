"""The one writer: a thread that folds all waiting units of work into one COMMIT.

A COMMIT at ``synchronous=FULL`` costs a disk flush, however much is in it. So callers
hand in units; the thread takes all that wait, runs each for itself, commits once, and
hands the results back to the event loop with one call.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from storage.errors import StorageBusy, StorageClosed
from storage.sqlite.driving import ThreadWorker, Worker
from storage.sqlite.groups import SINGLE, UNIT, GroupCommits, Result, Run, Unit

CAPACITY = 10_000
"""Units that may wait; the next one is refused with `StorageBusy`."""
GROUP_SIZE = 1_000
"""Units in one COMMIT at most, so that none waits long for its neighbours."""

MOST_URGENT = 100

_NO_RUN: Final = Run("")
"""Stands for the last run while nothing is gathered; nothing is ever put in it."""


class Writer:
    """Owns the connection from `start` to `close`. Use from the event loop only."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        capacity: int = CAPACITY,
        worker: Worker | None = None,
    ) -> None:
        """``worker``: where the connection is used; by default a thread."""
        self._connection = connection
        self._capacity = capacity
        self._loop = asyncio.get_running_loop()
        self._create_future = self._loop.create_future
        self._is_closing = False
        self._run = _NO_RUN  # the last of those gathered
        self._room = 0  # left in it
        self._gathered: list[Run] = []
        self._gathered_size = 0  # without the last run
        self._accepted = 0  # ever; without the last run
        self._groups: deque[list[Run]] = deque()  # from the loop to the thread
        self._urgent: deque[Run] = deque()
        self._rest: list[Run] = []  # of a group that made way for what is urgent
        self._taken = 0  # ever, by the thread
        self._closed = self._loop.create_future()
        self._commits = GroupCommits(connection)
        self._worker = worker or ThreadWorker()
        self._worker.start(self._work)

    @property
    def trouble(self) -> str:
        """Why the last write that touched the disk failed; "" when it did not."""
        return self._commits.trouble

    def submit(
        self,
        unit: Unit[Result],
        *,
        is_single: bool = False,
        is_urgent: bool = False,
        then: Callable[[Result], None] | None = None,
    ) -> asyncio.Future[Result]:
        """Queue a unit; the future is done when it is durable.

        ``is_single``: it is one statement, which is atomic without a savepoint.
        ``is_urgent``: it waits for no other but the one under way, and is committed
        without them. For few: all others wait for these.
        ``then`` is called with the result on the event loop, even if nobody waits for
        the future any more. Raises `StorageBusy`, `StorageClosed`.
        """
        kind = SINGLE if is_single else UNIT
        if is_urgent:
            return self._put_first(Run(kind), unit, then)
        run = self._run
        if run.kind is not kind or not self._room:
            run = self._begin_run(kind)
        if then is not None:
            run.thens[len(run.work)] = then
        self._room -= 1
        future: asyncio.Future[Result] = self._create_future()
        run.work.append(unit)
        run.futures.append(future)
        return future

    def _put_first(
        self, run: Run, unit: Unit[Result], then: Callable[[Result], None] | None
    ) -> asyncio.Future[Result]:
        if self._is_closing:
            raise StorageClosed("the database is closed")
        if len(self._urgent) >= MOST_URGENT:
            raise StorageBusy(f"{MOST_URGENT} urgent writes are waiting already")
        future: asyncio.Future[Result] = self._create_future()
        run.work.append(unit)
        run.futures.append(future)
        if then is not None:
            run.thens[0] = then
        self._urgent.append(run)
        self._worker.wake()
        return future

    def execute(self, sql: str, parameters: Sequence[object]) -> asyncio.Future[None]:
        """Queue one INSERT, UPDATE or DELETE without a result: the cheapest unit.

        `Assignments` take a pair of integers for parameters; those that come in a row
        are one statement, if ``sql`` is one and the same object. Raises `StorageBusy`,
        `StorageClosed`.
        """
        run = self._run  # as in `submit`, without another call
        if run.kind is not sql or not self._room:
            run = self._begin_run(sql)
        self._room -= 1
        future: asyncio.Future[None] = self._create_future()
        run.work.append(parameters)
        run.futures.append(future)
        return future

    async def close(self) -> None:
        """Finish what waits, fold the WAL into the file, and close. May be repeated."""
        if not self._is_closing:
            self._hand_over()  # before the thread may end
            self._is_closing = True
            self._worker.wake()
        await asyncio.shield(self._closed)

    def _begin_run(self, kind: str) -> Run:
        """What bounds the queue and the group is asked here only, to keep the rest of
        a write short: a run is told how much room there is."""
        if self._is_closing:
            raise StorageClosed("the database is closed")
        self._end_run()
        room = self._capacity - (self._accepted - self._taken)
        if room <= 0:
            raise StorageBusy(f"{self._capacity} writes are waiting already")
        if self._gathered_size >= GROUP_SIZE:
            self._hand_over()
        if not self._gathered:
            self._loop.call_soon(self._hand_over)
        self._run = Run(kind)
        self._room = min(room, GROUP_SIZE - self._gathered_size)
        self._gathered.append(self._run)
        return self._run

    def _end_run(self) -> None:
        self._gathered_size += len(self._run.work)
        self._accepted += len(self._run.work)
        self._run = _NO_RUN

    def _hand_over(self) -> None:
        """After all who run in this turn of the loop, so that they are one group and
        the thread does not wake up only to wait for the interpreter."""
        self._end_run()
        if self._gathered:
            self._groups.append(self._gathered)
            self._gathered, self._gathered_size = [], 0
        self._worker.wake()

    # --- the thread ---

    def _work(self) -> bool:
        """Write what waits; whether more may come."""
        while group := self._next_group():
            self._rest += self._commits.write(group, self._is_pressed)
            self._call_loop(_deliver, group)
        if not self._is_closing or self._groups or self._urgent:
            return True
        try:
            _checkpoint_and_close(self._connection)
        finally:
            self._call_loop(self._finish)
        return False

    def _next_group(self) -> list[Run]:
        """What waits, the oldest first, as far as it fits into one COMMIT."""
        if self._urgent:
            return [self._urgent.popleft()]
        group, self._rest = self._rest, []
        size = 0
        while self._groups:
            size += sum(len(run.work) for run in self._groups[0])
            if group and size > GROUP_SIZE:
                break
            self._taken += sum(len(run.work) for run in self._groups[0])
            group += self._groups.popleft()
        return group

    def _is_pressed(self) -> bool:
        return bool(self._urgent)

    def _call_loop(self, function: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # the loop was closed: nobody waits any more
            return

    def _finish(self) -> None:
        self._closed.set_result(None)


def _deliver(group: Sequence[Run]) -> None:
    for run in group:
        run.tell()


def _checkpoint_and_close(connection: sqlite3.Connection) -> None:
    """The next opening need not replay a WAL; on a full disk it will."""
    with suppress(sqlite3.Error):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with suppress(sqlite3.Error):
        connection.close()
