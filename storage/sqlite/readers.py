"""Reads, on a few connections of their own, which see only committed data."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from storage.errors import StorageClosed
from storage.sqlite.connection_threads import (
    BY_THREADS,
    ConnectionThreads,
    Parameters,
    Read,
    ReadConnection,
)
from storage.sqlite.driver_errors import read_failure

READERS = 3

Row = tuple[Any, ...]
"""A row as the driver gives it; read at once into a value of `storage.records`."""


MOST_AHEAD: Final = 1_000
"""Reads that are made ahead at most."""


@dataclass(slots=True)
class RepeatedReads:
    """The reads of a task that does again what it did before.

    ``ahead``: the rows of those that were made ahead. ``made``: those that the task
    made since.
    """

    ahead: dict[Hashable, list[Row]]
    task: asyncio.Task[Any] | None
    made: dict[Hashable, Read] = field(default_factory=dict)

    def find(self, sql: str, parameters: Parameters) -> list[Row] | None:
        """The rows of a read if they are known; it is remembered."""
        named = parameters.items() if isinstance(parameters, Mapping) else parameters
        key = sql, tuple(named)
        if len(self.made) < MOST_AHEAD:
            self.made[key] = sql, parameters
        rows = self.ahead.get(key)
        return None if rows is None else rows.copy()


class Readers:
    """A fixed number of connections; a read waits until one is free."""

    def __init__(self, connections: Sequence[ReadConnection]) -> None:
        self._connections = connections
        self._idle: asyncio.LifoQueue[ReadConnection] = asyncio.LifoQueue()
        self._is_closed = False
        self._repeated: RepeatedReads | None = None
        self._last_made: dict[Hashable, Read] = {}
        for connection in connections:
            self._idle.put_nowait(connection)

    @classmethod
    async def open(cls, path: Path, threads: ConnectionThreads = BY_THREADS) -> Readers:
        """Open the connections. Raises `sqlite3.Error`."""
        return cls([await threads.open_for_reading(path) for _ in range(READERS)])

    async def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Read every row of a short page, in one trip to the reading thread."""
        if self._is_closed:
            raise StorageClosed("the database is closed")
        repeated = self._repeated
        if repeated is not None and repeated.task is asyncio.current_task():
            known = repeated.find(sql, parameters)
            if known is not None:
                return known
        connection = await self._idle.get()
        try:
            rows = await connection.execute_fetchall(sql, parameters)
        except sqlite3.Error as error:
            raise read_failure(error) from error
        finally:
            self._idle.put_nowait(connection)
        return cast("list[Row]", rows)  # tuples: no row factory is set

    async def read_ahead(self) -> AbstractContextManager[None]:
        """See `storage.contract.Storage`."""
        reads, self._last_made = self._last_made, {}
        rows = await self._each(list(reads.values())) if reads else []
        return self._repeat(dict(zip(reads, rows, strict=False)))

    async def _each(self, reads: Sequence[Read]) -> list[list[Row]]:
        """The rows of all reads; none if one fails, which its own reader is told."""
        if self._is_closed:
            return []
        connection = await self._idle.get()
        try:
            return await connection.fetch_each(reads)
        except sqlite3.Error:
            return []
        finally:
            self._idle.put_nowait(connection)

    @contextmanager
    def _repeat(self, ahead: dict[Hashable, list[Row]]) -> Iterator[None]:
        repeated = RepeatedReads(ahead, asyncio.current_task())
        self._repeated = repeated
        try:
            yield
        finally:
            self._repeated = None
            self._last_made = repeated.made

    async def first(self, sql: str, parameters: Parameters = ()) -> Row | None:
        rows = await self.all(sql, parameters)
        return rows[0] if rows else None

    async def close(self) -> None:
        """Let reads under way end, then close. May be repeated."""
        if self._is_closed:
            return
        self._is_closed = True
        for _ in self._connections:
            connection = await self._idle.get()
            await connection.close()
