"""Those who want to hear of subscriptions that have ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from storage.records import SubscriptionId

Listener = Callable[[Sequence[SubscriptionId]], None]


class EndedSubscriptions:
    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    @contextmanager
    def told_to(self, listener: Listener) -> Iterator[None]:
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    def tell(self, ids: Sequence[SubscriptionId]) -> None:
        for listener in self._listeners:
            listener(ids)
