"""Who is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from storage.records import (
    AccountId,
    FeedId,
    NewSubscription,
    Position,
    Subscribers,
    Subscription,
    SubscriptionId,
)


class SubscriptionStore(Protocol):
    """Who is told. The key is (account, topic, callback), whatever the spelling.

    A subscriber is given back the topic and called at the callback as it spelled them
    last (see `protocols.urls.normal_url`).
    """

    async def add(self, new: NewSubscription, now: datetime) -> Subscription:
        """Store as active, receiving records committed from now on.

        A known key takes the new secret, format, updates, batch and lease and keeps
        its place in the log; an ended one starts anew. The secret that another one
        replaces stays as the former one until ``new.former_until``, if there is one.

        Who is new to a feed in trouble gets the record that told of it, if the log
        still has it: by a straggler, due now.
        """
        ...

    async def get(self, subscription_id: SubscriptionId) -> Subscription | None: ...

    async def find(
        self, account: AccountId, topic: str, callback: str
    ) -> Subscription | None: ...

    async def holds(self, account: AccountId, feed_id: FeedId) -> bool:
        """Whether the account has an active subscription to the feed."""
        ...

    async def page(
        self,
        *,
        after: SubscriptionId,
        limit: int,
        account: AccountId | None = None,
        topic: str | None = None,
        callback: str | None = None,
    ) -> list[Subscription]:
        """Subscriptions that are not ended, by id."""
        ...

    async def end(
        self, subscription_id: SubscriptionId, reason: str, now: datetime, *, tell: bool
    ) -> Subscription:
        """End it: no delivery is started afterwards; its straggler goes with it.

        ``tell``: it becomes ENDING until `told`. Raises `NotFound`.
        """
        ...

    async def end_all(
        self,
        feed_id: FeedId,
        reason: str,
        now: datetime,
        limit: int,
        whose: Subscribers = Subscribers.ALL,
    ) -> int:
        """End up to ``limit`` subscriptions of a feed, each to be told."""
        ...

    async def expire(self, now: datetime, limit: int) -> int:
        """End subscriptions whose lease is over, each to be told."""
        ...

    def watch_endings(
        self, tell: Callable[[Sequence[SubscriptionId], Position], None]
    ) -> AbstractContextManager[None]:
        """While entered, call ``tell`` with subscriptions that have ended, and where
        the log ended then.

        On the event loop, as soon as it is durable, and before whoever ended them goes
        on. One that had ended before may be named again.
        """
        ...

    async def ending(self, limit: int) -> list[Subscription]:
        """Subscriptions whose subscriber is still to be told."""
        ...

    async def told(self, ids: Sequence[SubscriptionId]) -> None: ...

    async def purge_ended(self, before: datetime, limit: int) -> int:
        """Delete subscriptions that ended before then and have nobody to tell.

        Their attempts and dead ranges go with them. How many there were.
        """
        ...

    async def forget_secrets(self, now: datetime, limit: int) -> int:
        """Delete former secrets whose time is over; how many."""
        ...

    async def count(self, feed_id: FeedId) -> int:
        """Active subscriptions of a feed."""
        ...
