"""Subscriptions that get a digest once a day."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from storage.records import Subscription, SubscriptionId


class DigestStore(Protocol):
    """Which subscriptions get a digest, and when the next."""

    async def set(self, subscription_id: SubscriptionId, due: datetime | None) -> None:
        """None: no digests any more. One that has ended gets none."""
        ...

    async def due(self, now: datetime, limit: int) -> list[Subscription]:
        """Active ones that are due, the one that has waited longest first."""
        ...
