"""Lists for operators: feeds and subscriptions by filter, in a chosen order.

The cost of a page depends on its rows only, however many others there are: an index
leads to a state, a category, an order, and to a part of a feed's URL or title. If a
large share of all feeds has that part, all feeds are searched in the order asked for.
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
        """Feeds after the place, in that order; those with the same key by id."""
        ...

    async def count(self, wanted: FeedFilter, most: int) -> int:
        """How many feeds match, however long that takes; counting stops at ``most``."""
        ...

    async def counts(self) -> list[FeedCount]:
        """Numbers of feeds by health and category; zeros are left out."""
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
        """Subscriptions after the place, in that order; those of the same time by id.

        A part of a text is looked for in some thousand rows at a time, so a page may be
        short without being the last.
        """
        ...

    async def count(self, wanted: SubscriptionFilter, most: int) -> int:
        """Like `FeedSelectionStore.count`."""
        ...

    async def counts(self) -> dict[SubscriptionHealth, int]:
        """How many subscriptions are in each state other than the good one; ended
        subscriptions are not counted. States without subscriptions are left out."""
        ...

    async def conditions(
        self, ids: Sequence[SubscriptionId]
    ) -> list[SubscriptionCondition]:
        """The conditions of those subscriptions that exist, by id."""
        ...
