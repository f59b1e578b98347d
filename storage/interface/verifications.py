"""Requests to the open hub."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Protocol

from storage.records import (
    NewSubscription,
    NewVerification,
    SubscriptionId,
    Verification,
    VerificationState,
    VerificationTry,
)


class VerificationStore(Protocol):
    """Requests to the open hub, until their callbacks confirm them and some time after.

    A request's key is (account, topic, callback), whatever the spelling.
    """

    async def add(
        self,
        new: NewVerification,
        now: datetime,
        *,
        most: int,
        most_of_host: int,
        most_of_asker: int | None = None,
    ) -> bool:
        """Store as pending, due now. False, and nothing stored: too many are pending,
        of all, of its callback's host, or of who asks; None: that does not count.

        A pending one of the same key and mode is replaced and makes room for it. So is
        one of the other mode that waits to be tried again: its callback was silent.
        """
        ...

    async def due(
        self,
        now: datetime,
        *,
        per_host: int,
        limit: int,
        without: Collection[int] = (),
        without_hosts: Collection[str] = (),
    ) -> list[Verification]:
        """Pending ones that are due, oldest first, so many of each callback host.

        ``without``: ids of those that are in hand already. ``without_hosts``: callback
        hosts that have had their turn.

        Of one key only the oldest pending one, so that an unsubscription that follows
        a subscription is not asked about before it.
        """
        ...

    async def next_due(self) -> datetime | None: ...

    async def retry(
        self, verification_id: int, last: VerificationTry, due: datetime
    ) -> None:
        """Count a try that led nowhere; a done one stays done."""
        ...

    async def finish(
        self,
        verification_id: int,
        state: VerificationState,
        last: VerificationTry,
        *,
        kept_until: datetime,
    ) -> None:
        """Done, for `find` until that time; its secret is forgotten."""
        ...

    async def subscribe(
        self,
        verification_id: int,
        new: NewSubscription,
        last: VerificationTry,
        *,
        kept_until: datetime,
    ) -> None:
        """Its callback confirmed: what `SubscriptionStore.add` does, and it is done.

        That it was replaced meanwhile makes no difference: it was confirmed. Raises
        `NotFound` if the feed is gone or removed; then nothing is changed.
        """
        ...

    async def unsubscribe(
        self,
        verification_id: int,
        subscription_id: SubscriptionId,
        last: VerificationTry,
        *,
        kept_until: datetime,
    ) -> None:
        """Its callback confirmed: the subscription ends, untold, and it is done."""
        ...

    async def find(self, token: str) -> Verification | None: ...

    async def trim(self, now: datetime, limit: int) -> int:
        """Delete done ones that need not be kept any more; how many."""
        ...
