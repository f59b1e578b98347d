"""Filters and orders of operators' lists, and totals."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Self

import msgspec

from storage.records.feeds import FeedHealth, StoredFeed
from storage.records.identities import AccountId, FeedId, SubscriptionId
from storage.records.subscriptions import Subscription, SubscriptionHealth


class ListPlace(msgspec.Struct, frozen=True):
    """Where a page of a list ended: the sort key of its last row, and its id.

    ``key`` None: the list is ordered by id.
    """

    id: int
    key: str | datetime | int | None = None


class ListSort(StrEnum):
    """The order of a list; with a minus it is descending."""

    @property
    def is_falling(self) -> bool:
        return self.value.startswith("-")

    @property
    def rising(self) -> Self:
        return type(self)(self.value.removeprefix("-"))


# --- feeds ---


class FeedFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A feed is wanted if all conditions that are set hold.

    ``text`` is a part of the URL or title, in any case. ``since``: it has had its
    health since that time or longer; ``after``: it has had it since a later time.
    ``ids``: it is one of these, if any are named. ``host`` is that of the URL, without
    a port, in lower case; ``format`` is `StoredFeed.format`. Any feed matches "".
    """

    health: tuple[FeedHealth, ...] = ()  # any of them; none: all that are not removed
    category: str | None = None
    text: str = ""
    since: datetime | None = None
    after: datetime | None = None
    ids: tuple[FeedId, ...] = ()
    host: str = ""
    format: str = ""

    @property
    def is_of_group(self) -> bool:
        """Whether the filter asks for nothing but health and category."""
        return not (
            self.text or self.since or self.after or self.ids or self.has_host_or_format
        )

    @property
    def has_host_or_format(self) -> bool:
        """Whether a host or a format is asked for."""
        return bool(self.host or self.format)


class FeedSort(ListSort):
    """The orders in which feeds are listed."""

    ID = "id"
    URL = "url"
    SINCE = "since"  # feeds first that have had their health for the longest
    LAST_ID = "-id"
    LAST_URL = "-url"
    LAST_SINCE = "-since"
    SUBSCRIBERS = "subscribers"  # active subscriptions
    LAST_SUBSCRIBERS = "-subscribers"

    def place_of(self, feed: StoredFeed, subscribers: int) -> ListPlace:
        match self.rising:
            case FeedSort.SUBSCRIBERS:
                return ListPlace(feed.id, subscribers)
            case FeedSort.URL:
                return ListPlace(feed.id, feed.url)
            case FeedSort.SINCE:
                return ListPlace(feed.id, feed.health_since)
            case _:
                return ListPlace(feed.id)


class FeedPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of feeds. ``next``: the place after which the rest begins, or None.

    ``total``: how many feeds match in all; None if that is not asked for, or there are
    too many to count.
    """

    feeds: tuple[StoredFeed, ...]
    next: ListPlace | None
    total: int | None = None


class FeedCount(msgspec.Struct, frozen=True):
    """How many feeds of a category have this health."""

    health: FeedHealth
    category: str
    total: int


# --- subscriptions ---


class SubscriptionFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Like `FeedFilter`; ``text`` is a part of the callback or the topic."""

    health: tuple[SubscriptionHealth, ...] = ()  # none: all that have not ended
    account: AccountId | None = None
    feed_id: FeedId | None = None
    topic: str | None = None  # in any spelling
    callback: str | None = None  # in any spelling
    text: str = ""
    since: datetime | None = None
    after: datetime | None = None
    ids: tuple[SubscriptionId, ...] = ()


class SubscriptionSort(ListSort):
    """The orders in which subscriptions are listed."""

    ID = "id"
    SINCE = "since"
    LAST_ID = "-id"
    LAST_SINCE = "-since"

    def place_of(self, selected: SelectedSubscription) -> ListPlace:
        is_time = self.rising is SubscriptionSort.SINCE
        since = selected.condition.since if is_time else None
        return ListPlace(selected.subscription.id, since)


class SubscriptionCondition(msgspec.Struct, frozen=True, kw_only=True):
    """The health of a subscription; ``reason`` says why it is not well, "" if it is.

    ``last_milliseconds``: if it is slow or fails, how long its last request took that
    failed or caught up; None: none of them is kept.
    """

    id: SubscriptionId
    health: SubscriptionHealth
    since: datetime
    reason: str = ""
    last_milliseconds: int | None = None


class SelectedSubscription(msgspec.Struct, frozen=True, kw_only=True):
    subscription: Subscription
    condition: SubscriptionCondition


class SubscriptionPage(msgspec.Struct, frozen=True, kw_only=True):
    """Like `FeedPage`; a page may be short or empty without being the last."""

    subscriptions: tuple[SelectedSubscription, ...]
    next: ListPlace | None
    total: int | None = None
