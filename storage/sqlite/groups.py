"""A group of writes in one transaction, each of which succeeds or fails by itself.

Units run in a savepoint of their own. Statements are atomic without one. Assignments
alike that follow each other are one statement.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, TypeVar

import msgspec

from storage.errors import WriteFailed
from storage.sqlite.failures import is_trouble, is_unflushed, write_failure
from storage.sqlite.place import Place

Result = TypeVar("Result")
Unit = Callable[[sqlite3.Connection], Result]
"""A declarative intent, ready to run: all encoding was done when it was made."""

UNIT, SINGLE = "unit", "single statement"
TOUCH = "UPDATE meta SET checked_at = checked_at + 1"
"""A write that tells whether writes work, and nothing else."""


class Assignments(str):
    """SQL that gives any number of rows a value each; its parameter is `assigned`.

    What was handed in is pairs of a row's id and its value, both integers. SQLite takes
    half the time of as many statements, and needs the interpreter, for which the event
    loop would wait, once and not for each.
    """

    __slots__ = ()


def assigned(pairs: Iterable[tuple[int, int]]) -> str:
    """A JSON object for ``json_each``: of an id that comes twice the later value."""
    return msgspec.json.encode(dict(pairs)).decode()


@dataclass(slots=True, eq=False)
class Run:
    """Writes of one kind that follow each other, their callers, and what came of them.

    Lists side by side and not an object for each, of which there would be thousands a
    second; ``Any``, since each write has its own type of result.
    """

    kind: str  # `UNIT`, `SINGLE`, `Assignments`, or the SQL of statements
    work: list[Any] = field(default_factory=list)  # units, pairs, or parameters
    futures: list[asyncio.Future[Any]] = field(default_factory=list)
    thens: dict[int, Callable[[Any], None]] = field(default_factory=dict)
    results: list[Any] = field(default_factory=list)  # of units; statements have none
    errors: dict[int, Exception] = field(default_factory=dict)

    def split(self, index: int) -> Run:
        """Take from there on out of it: what was not begun yet."""
        rest = Run(self.kind, self.work[index:], self.futures[index:])
        for at in [each for each in self.thens if each >= index]:
            rest.thens[at - index] = self.thens.pop(at)
        del self.work[index:], self.futures[index:]
        return rest

    def fail(self, error: Exception) -> None:
        """All of it; what had failed before keeps its own error."""
        self.results = []
        self.errors = {index: error for index in range(len(self.work))} | self.errors

    def tell(self) -> None:
        """On the event loop. A caller that was cancelled meanwhile is told nothing, but
        what it wrote is written."""
        results: Iterable[Any] = self.results or repeat(None)
        if self.errors or self.thens:
            return self._tell_each(results)
        for future, result in zip(self.futures, results, strict=False):
            try:
                future.set_result(result)
            except asyncio.InvalidStateError:  # cancelled
                continue

    def _tell_each(self, results: Iterable[Any]) -> None:
        told = enumerate(zip(self.futures, results, strict=False))
        for index, (future, result) in told:
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
        """What it raises is its caller's, or the loop's if nobody waits: the others of
        the group are told all the same."""
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
    """Writes groups to one connection, on whatever thread it is called.

    ``trouble`` is why the last write that touched the disk failed; "" when it did not.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._place = Place(connection)
        self._place.check()
        self.trouble = ""

    def write(
        self, group: list[Run], is_pressed: Callable[[], bool] = lambda: False
    ) -> list[Run]:
        """Results and errors are noted in the runs; durable is what has no error.

        ``is_pressed``: something else is to be committed first. Then what has not
        begun is taken out of the group, and returned.
        """
        rest: list[Run] = []
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
        except BaseException as error:  # the thread goes on, and nobody waits
            self._fail(group, error)
            return rest
        has_written = any(len(run.errors) < len(run.work) for run in group)
        if has_written and connection.total_changes > changes:
            self.trouble = ""
        return rest

    def _try(self, unit: Unit[Any], index: int, run: Run) -> Any:
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

    def _assign(self, run: Run) -> bool:
        """All in one statement; False if it failed, of which nothing is left."""
        try:
            self._connection.execute(run.kind, (assigned(run.work),))
        except Exception as error:
            self._undo(error, is_single=True)
            return False
        return True

    def _execute_each(self, run: Run) -> None:
        for index, parameters in enumerate(run.work):
            try:
                if isinstance(run.kind, Assignments):
                    parameters = (assigned([parameters]),)
                self._connection.execute(run.kind, parameters)
            except Exception as error:
                run.errors[index] = self._undo(error, is_single=True)

    def _undo(self, error: Exception, is_single: bool) -> Exception:
        """A unit's failure is its own, unless the whole transaction went with it."""
        connection = self._connection
        if not connection.in_transaction:
            raise error  # SQLite rolled all of it back: a full disk, an I/O error
        if not is_single:
            connection.execute("ROLLBACK TO unit")
            connection.execute("RELEASE unit")
        return self._explained(error)

    def _fail(self, group: Sequence[Run], error: BaseException) -> None:
        """Nothing of the group is stored; units that failed before keep their error."""
        explained = self._explained(error)
        self._roll_back()
        if isinstance(error, sqlite3.Error) and is_unflushed(error):
            self._write_over()
        for run in group:
            run.fail(explained)

    def _write_over(self) -> None:
        """What could not be flushed is in the WAL all the same, whole, and the next
        process would take it for committed if this one died now. Whatever comes after
        it goes to the same place: so something comes at once that may well come back.
        """
        with suppress(sqlite3.Error):
            for statement in ("BEGIN IMMEDIATE", TOUCH, "COMMIT"):
                self._connection.execute(statement)
        self._roll_back()

    def _roll_back(self) -> None:
        """A transaction that stays open is rolled back before the next group."""
        try:
            if self._connection.in_transaction:
                self._connection.rollback()
        except sqlite3.Error as error:
            self._explained(error)

    def _explained(self, error: BaseException) -> Exception:
        if not isinstance(error, Exception):  # which no write should raise
            failure = WriteFailed(f"the write ended by {type(error).__name__}: {error}")
            self.trouble = str(failure)
            return failure
        if not isinstance(error, sqlite3.Error):
            return error
        failure = write_failure(error)
        if is_trouble(error):
            self.trouble = str(failure)
        return failure
