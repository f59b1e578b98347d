"""What operators are told of their hub."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from storage.records import OperationalEvent, StoredFeed


class EventStore(Protocol):
    """Operational events, while there are subscriptions to them.

    They are queued in the transaction that brings them about: `FetchCommit.events`,
    what comes of deliveries, ends of subscriptions. Of subscriptions to events there
    are none: one that fails would never be done with telling of itself.
    """

    async def topic(self, name: str, now: datetime) -> StoredFeed:
        """The feed of a topic of events (`protocols.operational_events`), made or
        brought back if need be. It is private, and in the state ``EVENTS``."""
        ...

    async def publish(self, now: datetime, limit: int) -> int:
        """Append the oldest queued events to the log, for each topic that takes them;
        up to half of the ``limit`` those of the hub, which are first.

        At most ``limit``, and fewer while records of such topics wait to be split:
        ten thousand events at once are neither in the way of news nor a backlog, nor
        do they delay those of the hub. How many there were; those that no topic takes
        are dropped, and counted.
        """
        ...

    async def note_conditions(
        self, holding: Sequence[OperationalEvent], now: datetime
    ) -> None:
        """These conditions of the hub hold now. Of each that begins the event is
        queued, of each that is over the event that told of it, as ``is_over``."""
        ...
