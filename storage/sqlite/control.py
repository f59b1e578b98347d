"""`storage.contract.ControlStore` on SQLite: the only node is told of its own
writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from storage.records import (
    AccessEnded,
    ControlEvent,
    FeedId,
    PauseChanged,
    QueriesCame,
    QueriesWent,
    SubscriptionId,
    SubscriptionsEnded,
    TokenId,
    TrackQuery,
)
from storage.sqlite.log_end import LogEnd


class SqliteControl:
    """Stores report what has become durable; this passes it to the watchers, in the
    order of the writes."""

    def __init__(self, end: LogEnd) -> None:
        self._end = end
        self._watching: list[Callable[[ControlEvent], None]] = []

    @contextmanager
    def watch(self, tell: Callable[[ControlEvent], None]) -> Iterator[None]:
        self._watching.append(tell)
        try:
            yield
        finally:
            self._watching.remove(tell)

    def ended(self, ids: Sequence[SubscriptionId]) -> None:
        """Report that these subscriptions have ended, as of the log's current end."""
        if ids:
            self._tell(SubscriptionsEnded(tuple(ids), self._end.position))

    def paused(self, subscription_id: SubscriptionId, *, is_paused: bool) -> None:
        self._tell(PauseChanged(subscription_id, is_paused))

    def came(self, version: int, query: TrackQuery) -> None:
        self._tell(QueriesCame(version, (query,)))

    def went(self, ids: Sequence[FeedId]) -> None:
        if ids:
            self._tell(QueriesWent(tuple(ids)))

    def access_ended(
        self, *, tokens: Sequence[TokenId] = (), feeds: Sequence[FeedId] = ()
    ) -> None:
        self._tell(AccessEnded(tokens=tuple(tokens), feeds=tuple(feeds)))

    def _tell(self, event: ControlEvent) -> None:
        """Tell all watchers; what one of them raises, the loop's handler is told."""
        for each in self._watching:
            try:
                each(event)
            except Exception as error:
                asyncio.get_running_loop().call_exception_handler(
                    {"message": "a watcher of decisions failed", "exception": error}
                )
