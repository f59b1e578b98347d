"""Who waits for what becomes durable: the end of the log, subscriptions that ended or
were paused, queries that came or went."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

from storage.contract.subscriptions import QueryListener
from storage.errors import StorageClosed
from storage.records import FeedId, Position, SubscriptionId, TrackQuery


class LogEnd:
    def __init__(self, position: Position) -> None:
        self._position = position
        self._moved = asyncio.Event()
        self._is_closed = False

    @property
    def position(self) -> Position:
        return self._position

    def advance(self, positions: tuple[Position, ...]) -> None:
        """Records at these positions have become durable."""
        if positions and positions[-1] > self._position:
            self._position = positions[-1]
            self._wake()

    async def wait(self, after: Position, seconds: float) -> Position:
        """Return when the end is above ``after``, or after so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                while self._position <= after:
                    if self._is_closed:
                        raise StorageClosed("the database is closed")
                    await self._moved.wait()
        except TimeoutError:
            pass
        return self._position

    def close(self) -> None:
        self._is_closed = True
        self._wake()

    def _wake(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()


Listener = TypeVar("Listener", bound=Callable[..., None])
EndingListener = Callable[[Sequence[SubscriptionId], Position], None]
PauseListener = Callable[[SubscriptionId, bool], None]


class Watchers(Generic[Listener]):
    """Those who hear of what was written, in the order of the writes."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    @contextmanager
    def told_to(self, listener: Listener) -> Iterator[None]:
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)


class EndedSubscriptions(Watchers[EndingListener]):
    def __init__(self, head: LogEnd) -> None:
        super().__init__()
        self._head = head

    def tell(self, ids: Sequence[SubscriptionId]) -> None:
        """The log's end is that of the ending."""
        for listener in self._listeners:
            listener(ids, self._head.position)


class PausedSubscriptions(Watchers[PauseListener]):
    def tell(self, subscription_id: SubscriptionId, *, is_paused: bool) -> None:
        for listener in self._listeners:
            listener(subscription_id, is_paused)


class QueryWatchers(Watchers[QueryListener]):
    def tell(
        self, version: int, came: Sequence[TrackQuery], went: Sequence[FeedId]
    ) -> None:
        """These queries came or went."""
        for listener in self._listeners:
            listener(version, came, went)
