"""Small writes of one kind, combined into one unit of work.

Most of the cost of a small write is not its row but its savepoint, its statements and
its share of a commit. So after one batch, further writes are gathered for a little
while; a write after a longer quiet time is made at once.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Generic, TypeVar

from storage.errors import StorageBusy
from storage.sqlite.writer import CAPACITY, Writer

Item = TypeVar("Item")
Result = TypeVar("Result")
WriteAll = Callable[[Sequence[Item], sqlite3.Connection], Sequence[Result]]
"""Writes items in their order; returns the result of each."""

BATCH_SIZE = 250
"""The most items in one unit, so that other writes do not wait long."""


class Batches(Generic[Item, Result]):
    """Hands items to the writer many at a time. Use from the event loop only."""

    def __init__(
        self, writer: Writer, write_all: WriteAll[Item, Result], *, pause: float
    ) -> None:
        """``pause``: seconds between a batch's end and the next one's start."""
        self._writer = writer
        self._pause = pause
        self._write_all = write_all
        self._waiting: list[tuple[Item, asyncio.Future[Result]]] = []
        self._writing: asyncio.Task[None] | None = None

    def submit(self, item: Item) -> asyncio.Future[Result]:
        """Queue an item; the future is done when it is durable.

        Cancelling the future does not cancel the write. Raises `StorageBusy`; the
        future may also raise `StorageClosed`.
        """
        if len(self._waiting) >= CAPACITY:
            raise StorageBusy(f"{CAPACITY} writes are waiting already")
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write(), name="storage-batches")
        return future

    async def _write(self) -> None:
        """Write batches until nothing has come for a pause."""
        while batch := self._waiting[:BATCH_SIZE]:
            del self._waiting[:BATCH_SIZE]
            try:
                await self._write_batch(batch)
            except Exception:  # one item failed; the others are written alone
                for each in batch:
                    await self._write_alone(each)
            await asyncio.sleep(self._pause)

    async def _write_batch(
        self, batch: Sequence[tuple[Item, asyncio.Future[Result]]]
    ) -> None:
        unit = partial(self._write_all, [item for item, _future in batch])
        results = await self._writer.submit(unit)
        for (_item, future), result in zip(batch, results, strict=True):
            if not future.done():
                future.set_result(result)

    async def _write_alone(self, waiting: tuple[Item, asyncio.Future[Result]]) -> None:
        try:
            await self._write_batch([waiting])
        except Exception as error:
            if not waiting[1].done():
                waiting[1].set_exception(error)


def parted(
    items: Sequence[Item], key: Callable[[Item], Hashable]
) -> Iterator[list[Item]]:
    """Cut the items into runs, in order, so that no run has two of the same key."""
    run: list[Item] = []
    keys: set[Hashable] = set()
    for item in items:
        if key(item) in keys:
            yield run
            run, keys = [], set()
        run.append(item)
        keys.add(key(item))
    if run:
        yield run
