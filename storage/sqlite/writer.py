"""The one writer: a thread that folds all waiting units of work into one COMMIT.

A COMMIT at ``synchronous=FULL`` costs a disk flush, however much is in it. So callers
hand in units; the thread takes all that wait, runs each for itself, commits once, and
hands the results back to the event loop with one call.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from storage.errors import StorageBusy, StorageClosed

from .groups import SINGLE, UNIT, GroupCommits, Outcome, Result, Unit, Waiting

CAPACITY = 10_000
"""Units that may wait; the next one is refused with `StorageBusy`."""
GROUP_SIZE = 1_000
"""Units in one COMMIT at most, so that none waits long for its neighbours."""


class Writer:
    """Owns the connection from `start` to `close`. Use from the event loop only."""

    def __init__(
        self, connection: sqlite3.Connection, *, capacity: int = CAPACITY
    ) -> None:
        self._connection = connection
        self._capacity = capacity
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Waiting] = deque()
        self._arrived = threading.Event()
        self._will_call_thread = False
        self._is_closing = False
        self._closed = self._loop.create_future()
        self._commits = GroupCommits(connection)
        self._thread = threading.Thread(
            target=self._run, name="storage-writer", daemon=True
        )
        self._thread.start()

    @property
    def trouble(self) -> str:
        """Why the last write that touched the disk failed; "" when it did not."""
        return self._commits.trouble

    def submit(
        self,
        unit: Unit[Result],
        *,
        is_single: bool = False,
        then: Callable[[Result], None] | None = None,
    ) -> asyncio.Future[Result]:
        """Queue a unit; the future is done when it is durable.

        ``is_single``: it is one statement, which is atomic without a savepoint.
        ``then`` is called with the result on the event loop, even if nobody waits for
        the future any more. Raises `StorageBusy`, `StorageClosed`.
        """
        return self._queue(SINGLE if is_single else UNIT, unit, then)

    def execute(self, sql: str, parameters: Sequence[object]) -> asyncio.Future[None]:
        """Queue one INSERT, UPDATE or DELETE without a result: the cheapest unit."""
        return self._queue(sql, parameters, None)

    async def close(self) -> None:
        """Finish what waits, fold the WAL into the file, and close. May be repeated."""
        if not self._is_closing:
            self._is_closing = True
            self._arrived.set()
        await asyncio.shield(self._closed)

    def _queue(
        self, kind: str, work: Any, then: Callable[[Any], None] | None
    ) -> asyncio.Future[Any]:
        if self._is_closing:
            raise StorageClosed("the database is closed")
        if len(self._waiting) >= self._capacity:
            raise StorageBusy(f"{self._capacity} writes are waiting already")
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append((kind, work, future, then))
        if not self._will_call_thread:
            self._will_call_thread = True
            self._loop.call_soon(self._call_thread)
        return future

    def _call_thread(self) -> None:
        """After all who run in this turn of the loop, so that they are one group and
        the thread does not wake up only to wait for the interpreter."""
        self._will_call_thread = False
        self._arrived.set()

    # --- the thread ---

    def _run(self) -> None:
        while not self._is_closing or self._waiting:
            self._arrived.wait()
            self._arrived.clear()
            while group := self._next_group():
                self._call_loop(_deliver, group, self._commits.write(group))
        _checkpoint_and_close(self._connection)
        self._call_loop(self._finish)

    def _next_group(self) -> list[Waiting]:
        """What waits, the oldest first."""
        count = min(len(self._waiting), GROUP_SIZE)
        return [self._waiting.popleft() for _ in range(count)]

    def _call_loop(self, function: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # the loop was closed: nobody waits any more
            return

    def _finish(self) -> None:
        self._closed.set_result(None)


def _deliver(group: Sequence[Waiting], outcomes: Sequence[Outcome]) -> None:
    """On the event loop. A caller that was cancelled meanwhile is told nothing, but
    what it wrote is written."""
    for (_, _, future, then), (result, error) in zip(group, outcomes, strict=True):
        if error is None and then is not None:
            then(result)
        if future.done():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)


def _checkpoint_and_close(connection: sqlite3.Connection) -> None:
    """The next opening need not replay a WAL; on a full disk it will."""
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error:
        pass
    finally:
        connection.close()
