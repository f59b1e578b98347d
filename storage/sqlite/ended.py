"""Those who want to hear of subscriptions that have ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from storage.records import Position, SubscriptionId
from storage.sqlite.positions import LogHead

Listener = Callable[[Sequence[SubscriptionId], Position], None]


class EndedSubscriptions:
    def __init__(self, head: LogHead) -> None:
        self._head = head
        self._listeners: list[Listener] = []

    @contextmanager
    def told_to(self, listener: Listener) -> Iterator[None]:
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    def tell(self, ids: Sequence[SubscriptionId]) -> None:
        """Called in the order of the writes, so the head is that of the ending."""
        for listener in self._listeners:
            listener(ids, self._head.position)
