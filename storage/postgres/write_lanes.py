"""Writes of one kind, combined: while one call is under way the next ones gather.

A commit costs a flush of the server's disk, however much is in it; and if two calls
want the same lock, one waits for the other. So a hub makes one call of a lane at a
time, for all writes that have gathered.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import psycopg

from storage.errors import StorageBusy, StorageClosed
from storage.postgres.connections import CAPACITY

_WOKEN_AT_ONCE: Final = 2
Item = TypeVar("Item")
Call = TypeVar("Call")
Outcome = TypeVar("Outcome")


@dataclass(frozen=True, slots=True)
class _Batch(Generic[Item, Call, Outcome]):
    items: Sequence[Item]
    futures: Sequence[asyncio.Future[Outcome]]
    call: Call | Exception  # why there is none


class WriteLane(Generic[Item, Call, Outcome]):
    """Combines the writes of one lane. ``prepare`` makes a call of items, while the
    former one is under way if there are enough for a full one; ``write`` makes it.
    ``key_of``: a call takes no two items of one key. ``pause``: seconds between the end
    of a call and the start of the next."""

    def __init__(
        self,
        prepare: Callable[[Sequence[Item]], Call],
        write: Callable[[Call], Awaitable[Sequence[Outcome]]],
        *,
        most: int,
        most_size: int | None = None,
        size_of: Callable[[Item], int] = lambda _: 0,
        key_of: Callable[[Item], Hashable] | None = None,
        pause: float = 0.0,
    ) -> None:
        self._prepare = prepare
        self._write_call = write
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
        """Make calls until nothing is waiting. While those who were answered by one are
        woken, and prepare what they write next, the next call is on its way."""
        answered: _Answered[Outcome] = []
        batch = self._take()
        while batch.items or answered:
            answers = asyncio.create_task(self._answers(batch), name="storage-call")
            await _wake(answered)
            ahead = self._take() if len(self._waiting) >= self._most else None
            answered = [*zip(batch.futures, await answers, strict=True)]
            if self._pause:
                await _wake(answered)
                answered = []
                await asyncio.sleep(self._pause)
            batch = ahead or self._take()

    def _take(self) -> _Batch[Item, Call, Outcome]:
        """Take the oldest items, as many as go into one call."""
        items: list[Item] = []
        futures: list[asyncio.Future[Outcome]] = []
        keys: set[Hashable] = set()
        size = 0
        while self._waiting and len(items) < self._most:
            item, future = self._waiting[0]
            size += self._size_of(item)
            key = self._key_of(item) if self._key_of else len(items)
            is_full = self._most_size is not None and size > self._most_size
            if items and (key in keys or is_full):
                break
            keys.add(key)
            self._waiting.popleft()
            items.append(item)
            futures.append(future)
        return _Batch(items, futures, self._prepared(items))

    def _prepared(self, items: Sequence[Item]) -> Call | Exception:
        try:
            return self._prepare(items)
        except Exception as error:
            return error

    async def _answers(
        self, batch: _Batch[Item, Call, Outcome]
    ) -> Sequence[Outcome | Exception]:
        """After an error write each item alone, so that others do not suffer from one.
        If the server is to blame, some may be stored: then none is tried again."""
        if not batch.items:
            return []
        try:
            if isinstance(batch.call, Exception):
                raise batch.call
            return await self._write_call(batch.call)
        except Exception as error:
            of_server = isinstance(error.__cause__, psycopg.OperationalError)
            is_alone = len(batch.items) == 1
            if is_alone or of_server or isinstance(error, StorageClosed):
                return [error] * len(batch.items)
        return [await self._answer(item) for item in batch.items]

    async def _answer(self, item: Item) -> Outcome | Exception:
        try:
            (outcome,) = await self._write_call(self._prepare([item]))
        except Exception as error:
            return error
        return outcome


_Answered = Sequence[tuple[asyncio.Future[Outcome], Outcome | Exception]]


async def _wake(answered: _Answered[Outcome]) -> None:
    """A few at a time, since each of them has much to do before it waits again."""
    for number, (future, outcome) in enumerate(answered, 1):
        if future.done():
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
        if number % _WOKEN_AT_ONCE == 0:
            await asyncio.sleep(0)
