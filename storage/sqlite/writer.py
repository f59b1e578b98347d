"""The one writer: a thread that folds all waiting units of work into one COMMIT.

A COMMIT at ``synchronous=FULL`` costs a disk flush, however much is in it. So callers
hand in units; the thread takes all that wait, runs each in a savepoint of its own,
commits once, and hands the results back to the event loop with one call.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from storage.errors import StorageBusy, StorageClosed

from .failures import is_trouble, write_failure

Result = TypeVar("Result")
Unit = Callable[[sqlite3.Connection], Result]
"""A declarative intent, ready to run: all encoding was done when it was made."""

CAPACITY = 10_000
"""Units that may wait; the next one is refused with `StorageBusy`."""
GROUP_SIZE = 1_000
"""Units in one COMMIT at most, so that none waits long for its neighbours."""


_Waiting = tuple[Unit[Any], bool, asyncio.Future[Any], Callable[[Any], None] | None]
"""A unit, whether it is a single statement, its caller's future, and what to call with
its result. A plain tuple, since one is made for every write; ``Any``, since each has
its own type of result."""

_Outcome = tuple[Any, Exception | None]


class Writer:
    """Owns the connection from `start` to `close`. Use from the event loop only."""

    def __init__(
        self, connection: sqlite3.Connection, *, capacity: int = CAPACITY
    ) -> None:
        self._connection = connection
        self._capacity = capacity
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_Waiting] = deque()
        self._arrived = threading.Event()
        self._is_closing = False
        self._closed = self._loop.create_future()
        self._trouble = ""
        self._thread = threading.Thread(
            target=self._run, name="storage-writer", daemon=True
        )
        self._thread.start()

    @property
    def trouble(self) -> str:
        """Why the last write that touched the disk failed; "" when it did not."""
        return self._trouble

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
        if self._is_closing:
            raise StorageClosed("the database is closed")
        if len(self._waiting) >= self._capacity:
            raise StorageBusy(f"{self._capacity} writes are waiting already")
        future: asyncio.Future[Result] = self._loop.create_future()
        self._waiting.append((unit, is_single, future, then))
        if not self._arrived.is_set():
            self._arrived.set()
        return future

    async def close(self) -> None:
        """Finish what waits, fold the WAL into the file, and close. May be repeated."""
        if not self._is_closing:
            self._is_closing = True
            self._arrived.set()
        await asyncio.shield(self._closed)

    # --- the thread ---

    def _run(self) -> None:
        while not self._is_closing or self._waiting:
            self._arrived.wait()
            self._arrived.clear()
            while group := self._next_group():
                self._call_loop(_deliver, group, self._write(group))
        _checkpoint_and_close(self._connection)
        self._call_loop(self._finish)

    def _next_group(self) -> list[_Waiting]:
        """What waits, the oldest first."""
        count = min(len(self._waiting), GROUP_SIZE)
        return [self._waiting.popleft() for _ in range(count)]

    def _write(self, group: Sequence[_Waiting]) -> list[_Outcome]:
        connection = self._connection
        outcomes: list[_Outcome] = []
        changes = connection.total_changes
        try:
            connection.execute("BEGIN IMMEDIATE")
            for unit, is_single, _future, _then in group:
                try:
                    result = unit(connection) if is_single else self._save(unit)
                except Exception as error:
                    outcomes.append((None, self._undo(error, is_single)))
                else:
                    outcomes.append((result, None))
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            return self._fail(len(group), outcomes, error)
        has_written = any(error is None for _, error in outcomes)
        if has_written and connection.total_changes > changes:
            self._trouble = ""
        return outcomes

    def _save(self, unit: Unit[Any]) -> Any:
        self._connection.execute("SAVEPOINT unit")
        result = unit(self._connection)
        self._connection.execute("RELEASE unit")
        return result

    def _undo(self, error: Exception, is_single: bool) -> Exception:
        """A unit's failure is its own, unless the whole transaction went with it."""
        connection = self._connection
        if not connection.in_transaction:
            raise error  # SQLite rolled all of it back: a full disk, an I/O error
        if not is_single:
            connection.execute("ROLLBACK TO unit")
            connection.execute("RELEASE unit")
        return self._explained(error)

    def _fail(
        self, count: int, outcomes: list[_Outcome], error: sqlite3.Error
    ) -> list[_Outcome]:
        """Nothing of the group is stored; units that failed before keep their error."""
        if self._connection.in_transaction:
            self._connection.rollback()
        explained = self._explained(error)
        errors = [error for _, error in outcomes] + [None] * (count - len(outcomes))
        return [(None, error or explained) for error in errors]

    def _explained(self, error: Exception) -> Exception:
        if not isinstance(error, sqlite3.Error):
            return error
        failure = write_failure(error)
        if is_trouble(error):
            self._trouble = str(failure)
        return failure

    def _call_loop(self, function: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # the loop was closed: nobody waits any more
            return

    def _finish(self) -> None:
        self._closed.set_result(None)


def _deliver(group: Sequence[_Waiting], outcomes: Sequence[_Outcome]) -> None:
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
