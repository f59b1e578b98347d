"""Lists of subscriptions, as a filter or a search finds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hub.services.topic_addresses import TrackTopics
from protocols.protocol_errors import InvalidValue
from storage.contract import Storage
from storage.records import (
    AccountId,
    DeliveryLag,
    FeedId,
    Listing,
    ListingSearch,
    ListPlace,
    SelectedSubscription,
    Subscription,
    SubscriptionCondition,
    SubscriptionFilter,
    SubscriptionHealth,
    SubscriptionId,
    SubscriptionPage,
    SubscriptionSort,
)

MOST_LAG: Final = 100
"""The most records that the lag of a subscription in a list counts."""
IN_EVERY_QUERY: Final = "track"
"""A text that the address of every track query contains."""
_BEHIND: Final = frozenset(
    {
        SubscriptionHealth.FAILING,
        SubscriptionHealth.SLOW,
        SubscriptionHealth.PAUSED,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionActivity:
    """What a list shows of a subscription. ``account``: the name of its account;
    ``lag``: how far it is behind, None if it is well or is sent nothing."""

    subscription: Subscription
    condition: SubscriptionCondition
    account: str
    lag: DeliveryLag | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedQuery:
    """A subscription to a track query; ``query`` is the text as it was written."""

    query: str
    found: SelectedSubscription


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedQueryPage:
    """Some track queries of an account. ``next``: the place after which the rest
    begins, or None; a page may be short or empty without being the last."""

    queries: tuple[TrackedQuery, ...]
    next: ListPlace | None


class SelectedSubscriptionService:
    def __init__(self, storage: Storage, tracks: TrackTopics) -> None:
        self._selections = storage.subscription_selections
        self._listings = storage.listings
        self._deliveries = storage.deliveries
        self._tokens = storage.tokens
        self._tracks = tracks

    async def page(
        self,
        wanted: SubscriptionFilter,
        sort: SubscriptionSort,
        *,
        after: ListPlace | None,
        limit: int,
    ) -> SubscriptionPage:
        """The subscriptions that a filter finds, with how many they are."""
        return await self._selections.page(wanted, sort, after=after, limit=limit)

    async def activities(
        self, found: Sequence[SelectedSubscription]
    ) -> list[SubscriptionActivity]:
        """The activity of each subscription of a list, in the list's order."""
        accounts = [each.subscription.account for each in found]
        names = await self._tokens.names(accounts)
        return [
            SubscriptionActivity(
                subscription=each.subscription,
                condition=each.condition,
                account=names[each.subscription.account],
                lag=await self._lag(each),
            )
            for each in found
        ]

    async def _lag(self, found: SelectedSubscription) -> DeliveryLag | None:
        if found.condition.health not in _BEHIND:
            return None
        return await self._deliveries.lag(found.subscription.id, MOST_LAG)

    async def of_feed(self, feed_id: FeedId, limit: int) -> SubscriptionPage:
        """The first subscriptions to a feed, without how many they are."""
        return await self._selections.page(
            SubscriptionFilter(feed_id=feed_id),
            SubscriptionSort.ID,
            after=None,
            limit=limit,
            has_total=False,
        )

    async def conditions(
        self, ids: Sequence[SubscriptionId]
    ) -> dict[SubscriptionId, SubscriptionCondition]:
        """How those of the subscriptions are that exist."""
        found = await self._selections.conditions(ids) if ids else []
        return {each.id: each for each in found}

    async def tracked(
        self, account: AccountId | None, *, after: ListPlace | None, limit: int
    ) -> TrackedQueryPage:
        """The track queries that an account is subscribed to; None: any account."""
        page = await self._selections.page(
            SubscriptionFilter(account=account, text=IN_EVERY_QUERY),
            SubscriptionSort.ID,
            after=after,
            limit=limit,
            has_total=False,
        )
        return TrackedQueryPage(
            queries=tuple(
                TrackedQuery(query=self._query(each.subscription.topic), found=each)
                for each in page.subscriptions
                if self._tracks.names_query(each.subscription.topic)
            ),
            next=page.next,
        )

    def _query(self, topic: str) -> str:
        try:
            found = self._tracks.read(topic)
        except InvalidValue:  # a former version took more
            return topic
        return found.text if found else topic

    async def listing(
        self,
        account: AccountId,
        search: ListingSearch,
        *,
        page: int,
        by_page: int,
        has_total: bool,
    ) -> Listing:
        """A page, counted from 1, of the active subscriptions of an account, the oldest
        first."""
        return await self._listings.page(
            account,
            search,
            skip=(page - 1) * by_page,
            limit=by_page,
            has_total=has_total,
        )
