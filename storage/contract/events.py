"""Events of the hub that operators can subscribe to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from storage.records import OperationalEvent, StoredFeed


class EventStore(Protocol):
    """Operational events, queued only while there are subscriptions to them.

    They are queued in the transaction that causes them: `FetchCommit.events`, outcomes
    of deliveries, ends of subscriptions. What happens to a subscription to events is
    itself no event: a failing one would otherwise report its own failures without end.
    """

    async def topic(self, name: str, now: datetime) -> StoredFeed:
        """The feed of a topic of events (`protocols.operational_events`), created or
        restored if needed. It is private, and in the state ``EVENTS``."""
        ...

    async def publish(self, now: datetime, limit: int) -> int:
        """Append the oldest queued events to the log, for each topic that takes them.

        Events of the hub itself come first, and take up to half of the ``limit``. At
        most ``limit`` are appended, and fewer while records of such topics wait to be
        split: so ten thousand events at once neither hold up news, nor become a
        backlog, nor delay the events of the hub. Returns how many there were; those
        that no topic takes are dropped, and counted.
        """
        ...

    async def note_conditions(
        self, holding: Sequence[OperationalEvent], now: datetime
    ) -> None:
        """Store which conditions of the hub hold now. Each condition that begins queues
        its event; each that has ended queues the event that announced it again, with
        ``is_over`` set."""
        ...
