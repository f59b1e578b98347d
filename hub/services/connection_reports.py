"""Live connections as operators see them: who is connected, which topics it listens to,
and how well it keeps up; and disconnecting a client.

These are the connections of this process, in memory: a list shows one moment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from heapq import nsmallest
from itertools import islice
from typing import Final

import structlog

from hub.live.live_connections import ConnectionRegistry, LiveConnection
from protocols.live.live_messages import DISCONNECTED
from storage.errors import NotFound

SHOWN_TOPICS: Final = 20
"""Topics shown of each connection, which may have a thousand."""

log = structlog.get_logger()


class Transport(StrEnum):
    WEBSOCKET = "websocket"
    EVENTS = "sse"
    STREAM = "stream"  # documents of the Superfeedr-compatible API
    POLL = "poll"  # a request that waits for its answer


class ConnectionSort(StrEnum):
    """The orders of a list: the oldest connection first, otherwise the largest value
    first."""

    ID = "id"
    NEWEST = "-id"
    QUEUE = "-queue"
    MESSAGES = "-messages"
    BYTES = "-bytes"
    TOPICS = "-topics"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionFilter:
    """Which connections are listed. None or "": any. ``topic``: one that the connection
    listens to, as it was requested."""

    transport: Transport | None = None
    topic: str = ""
    account: str = ""
    address: str = ""

    def fits(self, each: LiveConnection) -> bool:
        client = each.client
        return (
            (self.transport is None or each.opening.transport == self.transport)
            and (not self.topic or self.topic in each.subscriptions)
            and (not self.account or client.account == self.account)
            and (not self.address or client.address == self.address)
        )


ConnectionPlace = tuple[int, int]
"""Where the next page goes on: the sort value and the id of a page's last
connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionReport:
    """A live connection. ``account``: `anonymous` if it has no token. ``topics``: the
    first of ``topic_count``. ``queue``: bytes that wait to be taken by the client.
    ``is_behind``: records that it missed are still being sent."""

    id: int
    transport: Transport
    account: str
    address: str
    opened_at: datetime
    topics: tuple[str, ...]
    topic_count: int
    queue: int
    messages: int
    bytes: int
    is_behind: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionPage:
    """A page of connections. ``total``: how many the filter finds. ``next`` None: this
    is the last page."""

    connections: tuple[ConnectionReport, ...]
    total: int
    next: ConnectionPlace | None


class ConnectionService:
    def __init__(self, registry: ConnectionRegistry) -> None:
        self._registry = registry

    def counts(self) -> Mapping[Transport, int]:
        found = self._registry.transports
        return {each: found[each] for each in Transport}

    def page(
        self,
        wanted: ConnectionFilter,
        sort: ConnectionSort,
        *,
        after: ConnectionPlace | None,
        limit: int,
    ) -> ConnectionPage:
        if (wanted, sort) == (ConnectionFilter(), ConnectionSort.ID):
            return self._oldest(after, limit)
        place = _PLACES[sort]
        found = [(place(each), each) for each in self._registry if wanted.fits(each)]
        rest = [each for each in found if after is None or each[0] > after]
        first = nsmallest(limit, rest, key=lambda each: each[0])
        return ConnectionPage(
            connections=tuple(_report(each) for _, each in first),
            total=len(found),
            next=first[-1][0] if len(first) < len(rest) else None,
        )

    def _oldest(self, after: ConnectionPlace | None, limit: int) -> ConnectionPage:
        """A page in the order of age, without looking at all connections: a watched
        page is made each second."""
        kept, least = self._registry.connections, after[1] if after else -1
        first = list(islice((id for id in kept if id > least), limit + 1))
        shown = first[:limit]
        return ConnectionPage(
            connections=tuple(_report(kept[id]) for id in shown),
            total=len(kept),
            next=(0, shown[-1]) if len(first) > limit else None,
        )

    def get(self, id: int) -> ConnectionReport:
        """A live connection. Raises `NotFound`."""
        return _report(self._find(id))

    def disconnect(self, id: int) -> ConnectionReport:
        """Close a connection, and tell the client not to come back. Nothing enforces
        that; to do so, revoke its token or make the feed private. Raises `NotFound`."""
        found = self._find(id)
        report = _report(found)
        found.writer.close(DISCONNECTED)
        log.info(
            "live_connection_closed",
            connection=id,
            account=report.account,
            address=report.address,
        )
        return report

    def _find(self, id: int) -> LiveConnection:
        found = self._registry.find(id)
        if found is None:
            raise NotFound("connection", id)
        return found


def _report(each: LiveConnection) -> ConnectionReport:
    opening, client, writer = each.opening, each.client, each.writer
    return ConnectionReport(
        id=opening.id,
        transport=Transport(opening.transport),
        account=client.account,
        address=client.address,
        opened_at=opening.at,
        topics=tuple(islice(each.subscriptions, SHOWN_TOPICS)),
        topic_count=len(each.subscriptions),
        queue=writer.waiting,
        messages=writer.sent_messages,
        bytes=writer.sent_bytes,
        is_behind=each.is_behind,
    )


_PLACES: Final[Mapping[ConnectionSort, Callable[[LiveConnection], ConnectionPlace]]] = {
    ConnectionSort.ID: lambda each: (0, each.opening.id),
    ConnectionSort.NEWEST: lambda each: (0, -each.opening.id),
    ConnectionSort.QUEUE: lambda each: (-each.writer.waiting, each.opening.id),
    ConnectionSort.MESSAGES: lambda each: (
        -each.writer.sent_messages,
        each.opening.id,
    ),
    ConnectionSort.BYTES: lambda each: (-each.writer.sent_bytes, each.opening.id),
    ConnectionSort.TOPICS: lambda each: (-len(each.subscriptions), each.opening.id),
}
"""The sort values, by which places are compared as well."""
