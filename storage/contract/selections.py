"""Lists for operators: feeds and subscriptions by filter, in an order.

A page costs what its rows cost, however many others there are: an index leads to a
state, a category, an order, and to a part of a feed's URL or title. If a large share of
all has that part, the page is searched in the order among all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from storage.records import (
    FeedCount,
    FeedFilter,
    FeedPage,
    FeedSort,
    ListPlace,
    SubscriptionCondition,
    SubscriptionFilter,
    SubscriptionHealth,
    SubscriptionId,
    SubscriptionPage,
    SubscriptionSort,
)


class FeedSelectionStore(Protocol):
    async def page(
        self,
        wanted: FeedFilter,
        sort: FeedSort,
        *,
        after: ListPlace | None,
        limit: int,
        has_total: bool = True,
    ) -> FeedPage:
        """Those behind the place, in that order; of the same key by id."""
        ...

    async def count(self, wanted: FeedFilter, most: int) -> int:
        """How many there are, however long that takes; no further than ``most``."""
        ...

    async def counts(self) -> list[FeedCount]:
        """Feeds by health and category; none that are zero."""
        ...


class SubscriptionSelectionStore(Protocol):
    async def page(
        self,
        wanted: SubscriptionFilter,
        sort: SubscriptionSort,
        *,
        after: ListPlace | None,
        limit: int,
        has_total: bool = True,
    ) -> SubscriptionPage:
        """Those behind the place, in that order; of the same time by id.

        A part of a text is looked for in some thousand rows at a time, so that a page
        may be short and not the last one.
        """
        ...

    async def count(self, wanted: SubscriptionFilter, most: int) -> int:
        """Like `FeedSelectionStore.count`."""
        ...

    async def counts(self) -> dict[SubscriptionHealth, int]:
        """How many subscriptions are in each state but the good one, without those that
        have ended. States that none is in are left out."""
        ...

    async def conditions(
        self, ids: Sequence[SubscriptionId]
    ) -> list[SubscriptionCondition]:
        """The conditions of those subscriptions that exist, by id."""
        ...
