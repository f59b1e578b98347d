"""The one writer: a thread that combines all waiting units of work into one COMMIT.

A COMMIT at ``synchronous=FULL`` costs a disk flush, however much is in it. So callers
hand in units; the thread takes all that wait, runs each separately, commits once, and
hands the results back to the event loop with one call.

A COMMIT that fails is rolled back, so the outcome of a group is known at once. The one
exception is a group that was written but could not be flushed, and then could not be
written over either. While this process lives, nothing of it is stored; if the process
dies before it writes anything else, the next process finds the group. That is
`OutcomeUnknown`.

Each unit of a group succeeds or fails by itself: it runs in a savepoint of its own. A
single statement is atomic without one. Consecutive equal assignments are one statement.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Final, TypeVar

import msgspec

from storage.errors import (
    OutcomeUnknown,
    StorageBusy,
    StorageClosed,
    StorageError,
    WriteFailed,
)
from storage.records import WriteFaults
from storage.sqlite.connection_threads import ThreadWorker, Worker
from storage.sqlite.driver_errors import is_fault_of_file, is_unflushed, write_failure
from storage.sqlite.file_identity import FileIdentity

Result = TypeVar("Result")
Unit = Callable[[sqlite3.Connection], Result]
"""A unit of work, ready to run: all encoding was done when it was made."""

UNIT, SINGLE = "unit", "single statement"
TOUCH = "UPDATE meta SET checked_at = checked_at + 1"
"""A write that tells whether writes work, and nothing else."""


class Assignments(str):
    """SQL that gives any number of rows a value each; its parameter is `assigned`.

    Callers hand in pairs of a row's id and its value, both integers. One statement
    takes SQLite half the time of many, and needs the interpreter, which the event loop
    would wait for, only once.
    """

    __slots__ = ()


def assigned(pairs: Iterable[tuple[int, int]]) -> str:
    """The pairs as a JSON object for ``json_each``.

    If an id occurs twice, the later value counts.
    """
    return msgspec.json.encode(dict(pairs)).decode()


@dataclass(slots=True, eq=False)
class StatementRun:
    """Writes of one kind that follow each other, their callers, and their outcomes.

    They are in parallel lists: an object for each write would mean thousands of objects
    a second. ``Any``, since each write has its own type of result.
    """

    kind: str  # `UNIT`, `SINGLE`, `Assignments`, or the SQL of statements
    work: list[Any] = field(default_factory=list)  # units, pairs, or parameters
    futures: list[asyncio.Future[Any]] = field(default_factory=list)
    thens: dict[int, Callable[[Any], None]] = field(default_factory=dict)
    results: list[Any] = field(default_factory=list)  # of units; statements have none
    errors: dict[int, Exception] = field(default_factory=dict)

    def split(self, index: int) -> StatementRun:
        """Remove and return the work that was not begun, from that index on."""
        rest = StatementRun(self.kind, self.work[index:], self.futures[index:])
        for at in [each for each in self.thens if each >= index]:
            rest.thens[at - index] = self.thens.pop(at)
        del self.work[index:], self.futures[index:]
        return rest

    def fail(self, error: Exception) -> None:
        """Fail the whole run; errors that it had before are kept."""
        self.results = []
        self.errors = {index: error for index in range(len(self.work))} | self.errors

    def tell(self) -> None:
        """Hand results to the callers, on the event loop. A caller that was cancelled
        gets none, but its write is stored."""
        results: Iterable[Any] = self.results or repeat(None)
        if self.errors or self.thens:
            return self._tell_each(results)
        for future, result in zip(self.futures, results, strict=False):
            try:
                future.set_result(result)
            except asyncio.InvalidStateError:  # cancelled
                continue

    def _tell_each(self, results: Iterable[Any]) -> None:
        outcomes = enumerate(zip(self.futures, results, strict=False))
        for index, (future, result) in outcomes:
            error = self.errors.get(index)
            if error is None and index in self.thens:
                error = self._call_then(index, result)
            if future.done():
                continue
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

    def _call_then(self, index: int, result: Any) -> Exception | None:
        """Call ``then``.

        An error that it raises goes to the caller, or to the loop if nobody waits. The
        other callers of the group get their results all the same.
        """
        future = self.futures[index]
        try:
            self.thens[index](result)
        except Exception as error:
            if not future.done():
                return error
            future.get_loop().call_exception_handler(
                {"message": "what follows a write failed", "exception": error}
            )
        return None


class GroupCommits:
    """Writes groups to one connection, on the calling thread.

    ``write_error`` is why the last write that touched the disk failed; "" if it did
    not.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._place = FileIdentity(connection)
        self._place.check()
        self.write_error = ""
        self.faults = WriteFaults()

    def write(
        self, group: list[StatementRun], is_pressed: Callable[[], int] = lambda: False
    ) -> list[StatementRun]:
        """Write a group; its runs get results and errors, and what has no error is
        durable.

        ``is_pressed``: whether something else is to be committed first. Then work that
        has not begun is taken out of the group, and returned.
        """
        rest: list[StatementRun] = []
        connection = self._connection
        changes = connection.total_changes
        try:
            if connection.in_transaction:  # that could not be rolled back at its end
                connection.rollback()
            connection.execute("BEGIN IMMEDIATE")
            for number, run in enumerate(group):
                if run.kind is UNIT or run.kind is SINGLE:
                    for index, unit in enumerate(run.work):
                        if index and is_pressed():
                            rest.append(run.split(index))
                            break
                        run.results.append(self._try(unit, index, run))
                elif not isinstance(run.kind, Assignments) or not self._assign(run):
                    self._execute_each(run)
                if is_pressed():
                    rest += group[number + 1 :]
                    del group[number + 1 :]
            self._place.check()
            connection.execute("COMMIT")
        except BaseException as error:  # the thread must go on, and answer all callers
            self._fail(group, error)
            return rest
        has_written = any(len(run.errors) < len(run.work) for run in group)
        if has_written and connection.total_changes > changes:
            self.write_error = ""
        return rest

    def _try(self, unit: Unit[Any], index: int, run: StatementRun) -> Any:
        connection = self._connection
        is_single = run.kind is SINGLE
        try:
            if is_single:
                return unit(connection)
            connection.execute("SAVEPOINT unit")
            result = unit(connection)
            connection.execute("RELEASE unit")
        except Exception as error:
            run.errors[index] = self._undo(error, is_single)
            return None
        return result

    def _assign(self, run: StatementRun) -> bool:
        """Run all assignments as one statement.

        Returns False if it failed; then nothing of it is stored.
        """
        try:
            self._connection.execute(run.kind, (assigned(run.work),))
        except Exception as error:
            self._undo(error, is_single=True)
            return False
        return True

    def _execute_each(self, run: StatementRun) -> None:
        for index, parameters in enumerate(run.work):
            try:
                if isinstance(run.kind, Assignments):
                    parameters = (assigned([parameters]),)
                self._connection.execute(run.kind, parameters)
            except Exception as error:
                run.errors[index] = self._undo(error, is_single=True)

    def _undo(self, error: Exception, is_single: bool) -> Exception:
        """Undo one failed unit, unless the whole transaction went with it."""
        connection = self._connection
        if not connection.in_transaction:
            raise error  # SQLite rolled all of it back: a full disk, an I/O error
        if not is_single:
            connection.execute("ROLLBACK TO unit")
            connection.execute("RELEASE unit")
        return self._explained(error)

    def _fail(self, group: Sequence[StatementRun], error: BaseException) -> None:
        """Fail a group, of which nothing is stored; earlier errors of units are
        kept."""
        explained = self._explained(error)
        self._roll_back()
        is_left = isinstance(error, sqlite3.Error) and is_unflushed(error)
        if is_left and not self._is_written_over():
            explained = OutcomeUnknown(f"{explained}, and may be found stored")
        for run in group:
            run.fail(explained)

    def _is_written_over(self) -> bool:
        """Write something at once over a group that could not be flushed.

        The group is whole in the WAL, and the next process would take it for committed
        if this one died now. Whatever is written next goes to the same place. Returns
        False if nothing could be written.
        """
        try:
            for statement in ("BEGIN IMMEDIATE", TOUCH, "COMMIT"):
                self._connection.execute(statement)
        except sqlite3.Error as error:
            self._roll_back()
            return is_unflushed(error)
        return True

    def _roll_back(self) -> None:
        """Roll back a transaction that stayed open, before the next group."""
        try:
            if self._connection.in_transaction:
                self._connection.rollback()
        except sqlite3.Error as error:
            self._explained(error)

    def _explained(self, error: BaseException) -> Exception:
        if not isinstance(error, Exception):  # which no write should raise
            failure = WriteFailed(f"the write ended by {type(error).__name__}: {error}")
            self._note_fault(failure)
            return failure
        if not isinstance(error, sqlite3.Error):
            return error
        failure = write_failure(error)
        if is_fault_of_file(error):
            self._note_fault(failure)
        return failure

    def _note_fault(self, failure: StorageError) -> None:
        is_first = not self.write_error
        self.write_error = str(failure)
        self.faults = self.faults.one_more(self.write_error, is_first=is_first)


CAPACITY = 10_000
"""Units that may wait; the next one is refused with `StorageBusy`."""
GROUP_SIZE = 1_000
"""Units in one COMMIT at most, so that none waits long for its neighbours."""

MOST_URGENT = 100

_NO_RUN: Final = StatementRun("")
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
        self._gathered: list[StatementRun] = []
        self._gathered_size = 0  # without the last run
        self._accepted = 0  # in all; without the last run
        self._groups: deque[list[StatementRun]] = deque()  # from the loop to the thread
        self._urgent: deque[StatementRun] = deque()
        self._rest: list[
            StatementRun
        ] = []  # of a group that made way for what is urgent
        self._taken = 0  # in all, by the thread
        self._closed = self._loop.create_future()
        self._commits = GroupCommits(connection)
        self._worker = worker or ThreadWorker()
        self._worker.start(self._work)

    @property
    def write_error(self) -> str:
        """Why the last write that touched the disk failed; "" when it did not."""
        return self._commits.write_error

    @property
    def faults(self) -> WriteFaults:
        return self._commits.faults

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
        ``is_urgent``: the unit waits only for the group under way, and is committed
        alone. Use it rarely: all others wait meanwhile. ``then`` is called with the
        result on the event loop, even if nobody waits for the future any more. Raises
        `StorageBusy`, `StorageClosed`.
        """
        kind = SINGLE if is_single else UNIT
        if is_urgent:
            return self._put_first(StatementRun(kind), unit, then)
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
        self,
        run: StatementRun,
        unit: Unit[Result],
        then: Callable[[Result], None] | None,
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

        `Assignments` take a pair of integers for parameters; consecutive ones are one
        statement, if ``sql`` is the same object. Raises `StorageBusy`, `StorageClosed`.
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

    def _begin_run(self, kind: str) -> StatementRun:
        """Begin a run, within the bounds of the queue and of the group.

        The bounds are checked only here, to keep each further write short: ``_room`` is
        what they leave for the run.
        """
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
        self._run = StatementRun(kind)
        self._room = min(room, GROUP_SIZE - self._gathered_size)
        self._gathered.append(self._run)
        return self._run

    def _end_run(self) -> None:
        self._gathered_size += len(self._run.work)
        self._accepted += len(self._run.work)
        self._run = _NO_RUN

    def _hand_over(self) -> None:
        """Wake the thread once all callers of this turn of the loop have handed in.

        So they are one group, and the thread does not wake up only to wait for the
        interpreter.
        """
        self._end_run()
        if self._gathered:
            self._groups.append(self._gathered)
            self._gathered, self._gathered_size = [], 0
        self._worker.wake()

    # --- the thread ---

    def _work(self) -> bool:
        """Write what waits; returns whether more may come."""
        while group := self._next_group():
            self._rest += self._commits.write(group, self._urgent.__len__)
            self._call_loop(_deliver, group)
        if not self._is_closing or self._groups or self._urgent:
            return True
        try:
            _checkpoint_and_close(self._connection)
        finally:
            self._call_loop(self._finish)
        return False

    def _next_group(self) -> list[StatementRun]:
        """The waiting work, oldest first, as much as fits into one COMMIT."""
        if self._urgent:
            return [self._urgent.popleft()]
        group, self._rest = self._rest, []
        size = 0
        while self._groups:
            count = sum([len(run.work) for run in self._groups[0]])
            size += count
            if group and size > GROUP_SIZE:
                break
            self._taken += count
            group += self._groups.popleft()
        return group

    def _call_loop(self, function: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # the loop was closed: nobody waits any more
            return

    def _finish(self) -> None:
        self._closed.set_result(None)


def _deliver(group: Sequence[StatementRun]) -> None:
    for run in group:
        run.tell()


def _checkpoint_and_close(connection: sqlite3.Connection) -> None:
    """Fold the WAL into the file and close it.

    On a full disk the WAL stays, and the next opening replays it.
    """
    with suppress(sqlite3.Error):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with suppress(sqlite3.Error):
        connection.close()
