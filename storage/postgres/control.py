"""`storage.contract.ControlStore` on PostgreSQL.

A node is told of its own decisions as soon as they are durable. Decisions of all nodes
are also rows of the table ``control``, which a node that is not alone reads every
`PAUSE`. There it finds its own once more, each after those that preceded it: so what
two nodes decide of one subscription ends the same everywhere.
"""

from __future__ import annotations

import asyncio
from typing import Final

from storage.errors import StorageClosed
from storage.postgres.connections import Connections, Row
from storage.records import (
    AccessEnded,
    ControlEvent,
    DecisionsMissed,
    EpochBegan,
    FeedId,
    PauseChanged,
    Position,
    QueriesCame,
    QueriesWent,
    SubscriptionId,
    SubscriptionsEnded,
    TokenId,
    TrackQuery,
)
from storage.sqlite.control import SqliteControl
from storage.sqlite.log_end import LogEnd

PAUSE: Final = 0.05
"""Seconds between two looks at what other nodes have decided, and committed."""
UNREAD_SECONDS: Final = 15.0
"""How long nothing can be read before it counts as missed: a hub that is cut off for so
long has lost its term, and joins anew."""
_READ: Final = """
SELECT h.head, c.id, c.kind, c.ids, c.number, c.query FROM log_head h
LEFT JOIN (SELECT * FROM control WHERE id > %s ORDER BY id LIMIT 1000) c ON TRUE
ORDER BY c.id
"""


class PostgresControl(SqliteControl):
    """Stores report what has become durable; this passes it to the watchers."""

    def __init__(
        self,
        connections: Connections,
        end: LogEnd,
        unread_seconds: float = UNREAD_SECONDS,
    ) -> None:
        super().__init__(end)
        self._unread_seconds = unread_seconds
        self._connections = connections
        self._log_end = end
        self._following: asyncio.Task[None] | None = None

    def began(self, epoch: str) -> None:
        self._tell(EpochBegan(epoch))

    def follow(self, last: int) -> None:
        """Tell what comes after the event of this number, until `stop`."""
        self._following = asyncio.create_task(
            self._follow(last), name="storage-control"
        )

    def stop(self) -> None:
        if self._following is not None:
            self._following.cancel()
            self._following = None

    async def _follow(self, last: int) -> None:
        loop = asyncio.get_running_loop()
        read_at = loop.time()
        while True:
            try:
                rows = await self._connections.all(_READ, (last,))
                read_at = loop.time()
            except StorageClosed:
                return
            except Exception as error:  # whatever it is, the next look may succeed
                rows = []
                if loop.time() - read_at > self._unread_seconds:
                    read_at = loop.time()
                    self._tell(DecisionsMissed(str(error) or repr(error)))
            for head, number, *event in rows:
                self._log_end.advance((Position(head),))
                if number is not None:
                    self._tell(_read_or_miss(number, event))
                    last = number
            await asyncio.sleep(PAUSE)


def _read_or_miss(number: int, row: list[Row]) -> ControlEvent:
    try:
        return _read(row)
    except Exception as error:
        return DecisionsMissed(f"decision {number}, of the kind {row[0]!r}: {error!r}")


def _read(row: list[Row]) -> ControlEvent:
    kind, ids, number, query = row
    match kind:
        case "ended":
            return SubscriptionsEnded(tuple(map(SubscriptionId, ids)), Position(number))
        case "paused" | "resumed":
            return PauseChanged(SubscriptionId(ids[0]), kind == "paused")
        case "came":
            return QueriesCame(number, (TrackQuery(FeedId(ids[0]), query),))
        case "revoked":
            return AccessEnded(tokens=tuple(map(TokenId, ids)))
        case "hidden":
            return AccessEnded(feeds=tuple(map(FeedId, ids)))
        case "went":
            return QueriesWent(tuple(map(FeedId, ids)))
    raise ValueError("another version may know it")
