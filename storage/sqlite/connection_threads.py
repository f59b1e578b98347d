"""How a file's connections are opened, and what runs their statements.

Usually they have threads of their own; a simulation replaces these and runs the same
units and statements in the event loop, one after the other, when it chooses to. Nothing
else in the engine can tell the difference.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, Protocol

import aiosqlite

from storage.secrets import SecretBox
from storage.sqlite.columns import answer_time
from storage.sqlite.trigrams import folded
from storage.subscription_filter import wanted_news

_STATEMENTS_KEPT = 256
Parameters = Sequence[object] | Mapping[str, object]
Read = tuple[str, Parameters]
"""A statement that reads, and its parameters."""


def open_for_writing(path: Path) -> sqlite3.Connection:
    """A connection that has not yet touched the file; see `prepare_for_writing`."""
    return sqlite3.connect(
        path,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_STATEMENTS_KEPT,
    )


def prepare_for_writing(connection: sqlite3.Connection) -> None:
    """Make every COMMIT durable. Raises `sqlite3.Error`.

    A new file is set up so that its free pages can be given back; an older one stays as
    it is.
    """
    connection.executescript(
        """
        PRAGMA auto_vacuum = INCREMENTAL;
        PRAGMA journal_mode = WAL;
        PRAGMA synchronous = FULL;
        PRAGMA journal_size_limit = 67108864;
        PRAGMA cache_size = -16384;
        PRAGMA temp_store = MEMORY;
        """
    )
    _tell_what_is_wanted(connection)


def teach_secrets(connection: sqlite3.Connection, box: SecretBox) -> None:
    """Give SQL ``is_same_secret``, since a text is encrypted differently each time."""
    connection.create_function("is_same_secret", 2, box.is_same)


READ_FUNCTIONS: Final[Sequence[tuple[str, int, Callable[..., str | int | None]]]] = (
    ("fold", 1, folded),
    ("answer_time", 3, answer_time),
)
"""Functions that SQL of reads may use: each with the number of its arguments."""


async def open_for_reading(path: Path) -> ThreadReader:
    connect = partial(
        sqlite3.connect,
        read_only(path),
        uri=True,
        isolation_level=None,
        cached_statements=_STATEMENTS_KEPT,
    )
    connection = ThreadReader(connect, iter_chunk_size=64)
    await connection
    await connection.execute("PRAGMA cache_size = -8192")
    for name, arguments, function in READ_FUNCTIONS:
        await connection.create_function(name, arguments, function, deterministic=True)
    return connection


def read_only(path: Path) -> str:
    """The URI of a connection that cannot write."""
    return f"{path.absolute().as_uri()}?mode=ro"


def _tell_what_is_wanted(connection: sqlite3.Connection) -> None:
    """Give SQL the rule of `subscription_filter.wants`, as a table in memory."""
    connection.execute(
        "CREATE TEMP TABLE wanted (taker TEXT, news TEXT, PRIMARY KEY (taker, news))"
        " WITHOUT ROWID"
    )
    connection.executemany("INSERT INTO wanted VALUES (?, ?)", _wanted_news())


@cache
def _wanted_news() -> tuple[tuple[str, str], ...]:
    return tuple(wanted_news())


class ReadConnection(Protocol):
    """The part of `ThreadReader` that reads need."""

    async def execute_fetchall(
        self, sql: str, parameters: Any = None
    ) -> Iterable[Any]: ...

    async def fetch_each(self, reads: Iterable[Read]) -> list[list[Any]]:
        """The rows of each of the reads. Raises `sqlite3.Error` if one fails."""
        ...

    async def close(self) -> None: ...


class ThreadReader(aiosqlite.Connection):
    """Reads in a thread of its own; a trip there costs more than most reads."""

    async def fetch_each(self, reads: Iterable[Read]) -> list[list[Any]]:
        return await self._execute(fetch_each, self._conn, reads)  # type: ignore[no-any-return, no-untyped-call]


def fetch_each(
    connection: sqlite3.Connection, reads: Iterable[Read]
) -> list[list[Any]]:
    return [connection.execute(*each).fetchall() for each in reads]


class Worker(Protocol):
    """Runs the writer's work."""

    def start(self, work: Callable[[], bool]) -> None:
        """From now on call ``work`` after each `wake`, until it returns False."""
        ...

    def wake(self) -> None:
        """Report that there is work. Call from the event loop; returns at once."""
        ...


class ThreadWorker:
    """Runs the writer's work in a thread of its own."""

    def __init__(self) -> None:
        self._awake = threading.Event()

    def start(self, work: Callable[[], bool]) -> None:
        thread = threading.Thread(
            target=self._run, args=(work,), name="storage-writer", daemon=True
        )
        thread.start()

    def wake(self) -> None:
        self._awake.set()

    def _run(self, work: Callable[[], bool]) -> None:
        goes_on = True
        while goes_on:
            self._awake.wait()
            self._awake.clear()
            goes_on = work()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionThreads:
    """How the connections of one opened file are made, and what runs them."""

    worker: Callable[[], Worker] = ThreadWorker
    open_for_writing: Callable[[Path], sqlite3.Connection] = open_for_writing
    open_for_reading: Callable[[Path], Awaitable[ReadConnection]] = open_for_reading


BY_THREADS = ConnectionThreads()
