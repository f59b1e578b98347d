"""Lists of the model: everything is looked at, and sorted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from operator import gt, lt
from typing import Any, TypeVar
from urllib.parse import urlsplit

from protocols.urls import normal_url
from storage.records import (
    LISTED_HEALTH,
    LISTED_SUBSCRIPTIONS,
    FeedCount,
    FeedFilter,
    FeedPage,
    FeedSort,
    ListPlace,
    ListSort,
    SelectedSubscription,
    StoredFeed,
    Subscription,
    SubscriptionCondition,
    SubscriptionFilter,
    SubscriptionHealth,
    SubscriptionId,
    SubscriptionPage,
    SubscriptionSort,
    SubscriptionState,
)

from .state import ModelCondition, State

T = TypeVar("T")
ENDINGS = (SubscriptionState.ENDING, SubscriptionState.ENDED)


def _page_of(
    found: Sequence[T],
    place_of: Callable[[T], ListPlace],
    sort: ListSort,
    after: ListPlace | None,
    limit: int,
) -> tuple[tuple[T, ...], ListPlace | None]:
    """What follows a place in the order, and where that ends if there may be more."""
    rising = sorted(found, key=lambda each: _rank(place_of(each)))
    ordered = rising[::-1] if sort.is_falling else rising
    if after is not None:
        is_beyond, start = lt if sort.is_falling else gt, _rank(after)
        ordered = [it for it in ordered if is_beyond(_rank(place_of(it)), start)]
    page = tuple(ordered[:limit])
    return page, None if len(page) < limit else place_of(page[-1])


def _rank(place: ListPlace) -> tuple[Any, ...]:
    return (place.id,) if place.key is None else (place.key, place.id)


def _is_in_time(
    wanted: FeedFilter | SubscriptionFilter, health_since: datetime
) -> bool:
    is_old = wanted.since is None or health_since <= wanted.since
    return is_old and (wanted.after is None or health_since > wanted.after)


class MemoryFeedSelections:
    def __init__(self, state: State) -> None:
        self._state = state

    async def page(
        self,
        wanted: FeedFilter,
        sort: FeedSort,
        *,
        after: ListPlace | None,
        limit: int,
        has_total: bool = True,
    ) -> FeedPage:
        found = self._found(wanted)

        def place_of(feed: StoredFeed) -> ListPlace:
            return sort.place_of(feed, len(self._state.active(feed.id)))

        feeds, next = _page_of(found, place_of, sort, after, limit)
        return FeedPage(feeds=feeds, next=next, total=len(found) if has_total else None)

    async def count(self, wanted: FeedFilter, most: int) -> int:
        return min(most, len(self._found(wanted)))

    def _found(self, wanted: FeedFilter) -> list[StoredFeed]:
        text = wanted.text.lower()
        return [
            feed
            for feed in (each.stored for each in self._state.feeds.values())
            if feed.health in (wanted.health or LISTED_HEALTH)
            and wanted.category in (None, feed.category)
            and (not wanted.ids or feed.id in wanted.ids)
            and wanted.host in ("", urlsplit(feed.url).hostname)
            and wanted.format in ("", feed.format)
            and (text in feed.url.lower() or text in feed.title.lower())
            and _is_in_time(wanted, feed.health_since)
        ]

    async def counts(self) -> list[FeedCount]:
        totals = Counter(
            (each.stored.health, each.stored.category)
            for each in self._state.feeds.values()
        )
        return [FeedCount(*group, total) for group, total in sorted(totals.items())]


class MemorySubscriptionSelections:
    def __init__(self, state: State) -> None:
        self._state = state

    async def page(
        self,
        wanted: SubscriptionFilter,
        sort: SubscriptionSort,
        *,
        after: ListPlace | None,
        limit: int,
        has_total: bool = True,
    ) -> SubscriptionPage:
        found = self._found(wanted)
        subscriptions, next = _page_of(found, sort.place_of, sort, after, limit)
        return SubscriptionPage(
            subscriptions=subscriptions,
            next=next,
            total=len(found) if has_total else None,
        )

    async def count(self, wanted: SubscriptionFilter, most: int) -> int:
        return min(most, len(self._found(wanted)))

    def _found(self, wanted: SubscriptionFilter) -> list[SelectedSubscription]:
        every = (
            SelectedSubscription(subscription=each, condition=self._condition(each))
            for each in self._state.subscriptions.values()
        )
        return [each for each in every if _is_wanted(wanted, each)]

    def _condition(self, subscription: Subscription) -> SubscriptionCondition:
        known = self._state.conditions.get(subscription.id, ModelCondition())
        since = known.paused_at or known.since
        health, reason = known.health, known.failure
        if subscription.state in ENDINGS:
            is_gone = health is SubscriptionHealth.GONE
            health = SubscriptionHealth.GONE if is_gone else SubscriptionHealth.ENDED
            reason = subscription.ended_reason
            since = self._state.ended_at[subscription.id]
        elif subscription.state is SubscriptionState.PENDING:
            health = SubscriptionHealth.PENDING
        elif known.paused_at is not None:
            health, reason = SubscriptionHealth.PAUSED, ""
        is_late = health in (SubscriptionHealth.SLOW, SubscriptionHealth.FAILING)
        taken = [
            each.milliseconds
            for each in self._state.attempts
            if is_late and each.subscription_id == subscription.id
        ]
        return SubscriptionCondition(
            id=subscription.id,
            health=health,
            since=since or subscription.created_at,
            reason=reason,
            last_milliseconds=taken[-1] if taken else None,
        )

    async def counts(self) -> dict[SubscriptionHealth, int]:
        found = Counter(
            each.condition.health for each in self._found(SubscriptionFilter())
        )
        return {
            health: number
            for health, number in found.items()
            if health is not SubscriptionHealth.OK
        }

    async def conditions(
        self, ids: Sequence[SubscriptionId]
    ) -> list[SubscriptionCondition]:
        subscriptions = self._state.subscriptions
        return [
            self._condition(subscriptions[each])
            for each in sorted(ids)
            if each in subscriptions
        ]


def _is_wanted(wanted: SubscriptionFilter, each: SelectedSubscription) -> bool:
    subscription, text = each.subscription, wanted.text.lower()
    topic, callback = subscription.topic, subscription.callback
    return (
        each.condition.health in (wanted.health or LISTED_SUBSCRIPTIONS)
        and wanted.account in (None, subscription.account)
        and wanted.feed_id in (None, subscription.feed_id)
        and (not wanted.ids or subscription.id in wanted.ids)
        and (wanted.topic is None or normal_url(wanted.topic) == normal_url(topic))
        and (
            wanted.callback is None
            or normal_url(wanted.callback) == normal_url(callback)
        )
        and (text in callback.lower() or text in topic.lower())
        and _is_in_time(wanted, each.condition.since)
    )
