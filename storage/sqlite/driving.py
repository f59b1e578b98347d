"""What drives the connections: threads of their own, or whatever is put in their place.

A simulation runs the same units and statements in the event loop, one after the other
and when it says so; nothing else of the engine knows the difference.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from storage.sqlite.connections import open_for_reading, open_for_writing

Parameters = Sequence[object] | Mapping[str, object]


class ReadConnection(Protocol):
    """As much of `aiosqlite.Connection` as reads need."""

    async def execute_fetchall(
        self, sql: str, parameters: Any = None
    ) -> Iterable[Any]: ...

    async def close(self) -> None: ...


class Worker(Protocol):
    """Where the writer works."""

    def start(self, work: Callable[[], bool]) -> None:
        """From now on call ``work`` after each `wake`, until it returns False."""
        ...

    def wake(self) -> None:
        """There is something to do. From the event loop; returns at once."""
        ...


class ThreadWorker:
    """A thread of its own."""

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
class Driving:
    """How the connections of one opened file are made and driven."""

    worker: Callable[[], Worker] = ThreadWorker
    open_for_writing: Callable[[Path], sqlite3.Connection] = open_for_writing
    open_for_reading: Callable[[Path], Awaitable[ReadConnection]] = open_for_reading


BY_THREADS = Driving()
