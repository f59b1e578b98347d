"""Writes of one kind, combined: while one call is under way the next ones gather.

A commit costs a flush of the server's disk, however much is in it; and if two calls
want the same lock, one waits for the other. So a hub makes one call of a lane at a
time, for all writes that have gathered.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

import psycopg

from storage.errors import StorageBusy, StorageClosed
from storage.postgres.connections import CAPACITY

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class WriteLane(Generic[Item, Outcome]):
    """Combines the writes of one lane. ``key_of``: a call takes no two items of one
    key. ``pause``: seconds between the end of a call and the start of the next."""

    def __init__(
        self,
        write_all: Callable[[Sequence[Item]], Awaitable[Sequence[Outcome]]],
        *,
        most: int,
        most_size: int | None = None,
        size_of: Callable[[Item], int] = lambda _: 0,
        key_of: Callable[[Item], Hashable] | None = None,
        pause: float = 0.0,
    ) -> None:
        self._write_all = write_all
        self._most = most
        self._most_size = most_size
        self._size_of = size_of
        self._key_of = key_of
        self._pause = pause
        self._waiting: deque[tuple[Item, asyncio.Future[Outcome]]] = deque()
        self._writing: asyncio.Task[None] | None = None

    def submit(self, item: Item) -> asyncio.Future[Outcome]:
        """Queue an item; the future is done when it is durable.

        Cancelling the future does not cancel the write. Raises `StorageBusy`.
        """
        if len(self._waiting) >= CAPACITY:
            raise StorageBusy(f"{CAPACITY} writes are waiting already")
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write(), name="storage-lane")
        return future

    async def _write(self) -> None:
        while self._waiting:
            batch = self._take()
            try:
                await self._write_batch(batch)
            except Exception as error:
                await self._settle(batch, error)
            if self._pause:
                await asyncio.sleep(self._pause)

    def _take(self) -> list[tuple[Item, asyncio.Future[Outcome]]]:
        """Take the oldest items, as many as go into one call."""
        batch: list[tuple[Item, asyncio.Future[Outcome]]] = []
        keys: set[Hashable] = set()
        size = 0
        while self._waiting and len(batch) < self._most:
            item, _ = self._waiting[0]
            size += self._size_of(item)
            key = self._key_of(item) if self._key_of else len(batch)
            is_full = self._most_size is not None and size > self._most_size
            if batch and (key in keys or is_full):
                break
            keys.add(key)
            batch.append(self._waiting.popleft())
        return batch

    async def _write_batch(
        self, batch: Sequence[tuple[Item, asyncio.Future[Outcome]]]
    ) -> None:
        outcomes = await self._write_all([item for item, _ in batch])
        for (_, future), outcome in zip(batch, outcomes, strict=True):
            if not future.done():
                future.set_result(outcome)

    async def _settle(
        self,
        batch: Sequence[tuple[Item, asyncio.Future[Outcome]]],
        error: Exception,
    ) -> None:
        """After an error write each item alone, so that others do not suffer from one.
        If the server is to blame, some may be stored: then none is tried again."""
        of_server = isinstance(error.__cause__, psycopg.OperationalError)
        if len(batch) == 1 or of_server or isinstance(error, StorageClosed):
            return _fail(batch, error)
        for each in batch:
            await self._write_alone(each)

    async def _write_alone(self, waiting: tuple[Item, asyncio.Future[Outcome]]) -> None:
        try:
            await self._write_batch([waiting])
        except Exception as error:
            _fail([waiting], error)


def _fail(
    batch: Sequence[tuple[Item, asyncio.Future[Outcome]]], error: Exception
) -> None:
    for _, future in batch:
        if not future.done():
            future.set_exception(error)
