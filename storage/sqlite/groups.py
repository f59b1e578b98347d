"""A group of writes in one transaction, each of which succeeds or fails by itself.

Units run in a savepoint of their own. Statements are atomic without one, and those
alike that follow each other are bound and run in one call.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter, length_hint
from typing import Any, TypeVar

from .failures import is_trouble, write_failure

Result = TypeVar("Result")
Unit = Callable[[sqlite3.Connection], Result]
"""A declarative intent, ready to run: all encoding was done when it was made."""

UNIT, SINGLE = "unit", "single statement"
Waiting = tuple[str, Any, asyncio.Future[Any], Callable[[Any], None] | None]
"""`UNIT` or `SINGLE` and the unit, or a statement's SQL and its parameters; its
caller's future, and what to call with its result. A plain tuple, since one is made for
every write; ``Any``, since each has its own type of result."""

Outcome = tuple[Any, Exception | None]
_DONE: Outcome = (None, None)
_kind = itemgetter(0)


class GroupCommits:
    """Writes groups to one connection, on whatever thread it is called.

    ``trouble`` is why the last write that touched the disk failed; "" when it did not.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.trouble = ""

    def write(self, group: Sequence[Waiting]) -> list[Outcome]:
        """What came of each, in order; durable where it is no error."""
        connection = self._connection
        outcomes: list[Outcome] = []
        changes = connection.total_changes
        try:
            connection.execute("BEGIN IMMEDIATE")
            for kind, alike in groupby(group, _kind):
                work = [each[1] for each in alike]
                if kind is UNIT or kind is SINGLE:
                    outcomes += [self._run(unit, kind is SINGLE) for unit in work]
                else:
                    self._repeat(kind, work, outcomes)
            connection.execute("COMMIT")
        except Exception as error:
            return self._fail(len(group), outcomes, error)
        has_written = any(error is None for _, error in outcomes)
        if has_written and connection.total_changes > changes:
            self.trouble = ""
        return outcomes

    def _run(self, unit: Unit[Any], is_single: bool) -> Outcome:
        connection = self._connection
        try:
            if is_single:
                return unit(connection), None
            connection.execute("SAVEPOINT unit")
            result = unit(connection)
            connection.execute("RELEASE unit")
        except Exception as error:
            return None, self._undo(error, is_single)
        return result, None

    def _repeat(
        self, sql: str, parameters: Sequence[Any], outcomes: list[Outcome]
    ) -> None:
        """The statement once with each parameters. Where a call stopped at a failure,
        what it had not yet taken tells which one failed; the next goes on behind it."""
        left = iter(parameters)
        while count := length_hint(left):
            try:
                self._connection.executemany(sql, left)
            except Exception as error:
                if length_hint(left) == count:
                    next(left)  # it failed before it took any
                outcomes += [_DONE] * (count - length_hint(left) - 1)
                outcomes.append((None, self._undo(error, is_single=True)))
            else:
                outcomes += [_DONE] * count

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
        self, count: int, outcomes: list[Outcome], error: Exception
    ) -> list[Outcome]:
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
            self.trouble = str(failure)
        return failure
