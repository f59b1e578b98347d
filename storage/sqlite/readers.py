"""Reads, on a few connections of their own, which see only committed data."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from storage.errors import StorageClosed
from storage.sqlite.connection_threads import (
    BY_THREADS,
    ConnectionThreads,
    Parameters,
    ReadConnection,
)
from storage.sqlite.driver_errors import read_failure

READERS = 3

Row = tuple[Any, ...]
"""A row as the driver gives it; read at once into a value of `storage.records`."""


class Readers:
    """A fixed number of connections; a read waits until one is free."""

    def __init__(self, connections: Sequence[ReadConnection]) -> None:
        self._connections = connections
        self._idle: asyncio.LifoQueue[ReadConnection] = asyncio.LifoQueue()
        self._is_closed = False
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
        connection = await self._idle.get()
        try:
            rows = await connection.execute_fetchall(sql, parameters)
        except sqlite3.Error as error:
            raise read_failure(error) from error
        finally:
            self._idle.put_nowait(connection)
        return cast("list[Row]", rows)  # tuples: no row factory is set

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
