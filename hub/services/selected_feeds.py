"""Lists of feeds, as a filter finds them, and what a list shows of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from hub.core.push.hub_subscription import PushFacts, PushState, push_facts
from hub.core.schedule.posting_profile import is_new, velocity
from hub.core.status.feed_health import HealthReport, health_of
from hub.core.status.findings import polls_per_entry
from hub.runtime.clock import Clock
from hub.services.feed_registration import FeedService
from hub.services.feed_reports import FeedReport
from storage.contract import Storage
from storage.records import (
    FeedFilter,
    FeedPage,
    FeedSort,
    FeedState,
    ListPlace,
    Poll,
    StoredFeed,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedFeed:
    """A feed, and of its polls that are kept the last that failed, if any did."""

    feed: StoredFeed
    last_failure: Poll | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedFeedPage:
    """A page of feeds; ``next`` and ``total`` are as in `FeedPage`."""

    feeds: tuple[SelectedFeed, ...]
    next: ListPlace | None
    total: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedActivity:
    """What a list shows of a feed besides its state. ``posts``: new entries a day, as
    the hub saw them, at least so many if the feed ``is_new``; ``pusher``: the hub that
    pushes the feed, "" if none does; ``subscribers``: active subscriptions;
    ``last_failure``: of the polls that are kept the last that failed, unless the feed
    fails now."""

    feed: StoredFeed
    health: HealthReport
    posts: float
    is_new: bool
    polls_per_entry: float | None
    pusher: str
    subscribers: int
    last_failure: Poll | None = None

    @property
    def is_polled(self) -> bool:
        return self.feed.state is FeedState.ACTIVE


class SelectedFeedService:
    def __init__(self, storage: Storage, feeds: FeedService, clock: Clock) -> None:
        self._storage = storage
        self._feeds = feeds
        self._clock = clock

    async def page(
        self,
        wanted: FeedFilter,
        sort: FeedSort,
        *,
        after: ListPlace | None,
        limit: int,
    ) -> SelectedFeedPage:
        """The feeds that a filter finds, with how many they are."""
        found = await self._storage.feed_selections.page(
            wanted, sort, after=after, limit=limit
        )
        return await self._selected(found)

    async def of_url(self, url: str) -> SelectedFeedPage:
        """The feed behind a URL in any spelling, if there is one. Raises
        `InvalidValue`."""
        feed = await self._feeds.find(url)
        found = () if feed is None else (feed,)
        return await self._selected(FeedPage(feeds=found, next=None, total=len(found)))

    async def _selected(self, page: FeedPage) -> SelectedFeedPage:
        failures = await self._storage.feeds.last_failures([it.id for it in page.feeds])
        return SelectedFeedPage(
            feeds=tuple(
                SelectedFeed(feed=each, last_failure=failures.get(each.id))
                for each in page.feeds
            ),
            next=page.next,
            total=page.total,
        )

    def activity(self, report: FeedReport) -> FeedActivity:
        """The row that a list would show of a feed."""
        now = self._clock.now()
        return _activity(report.feed, report.push, report.subscribers, None, now)

    async def activities(self, found: Sequence[SelectedFeed]) -> list[FeedActivity]:
        """The activity of each feed of a list, in the list's order."""
        now = self._clock.now()
        ids = [each.feed.id for each in found]
        subscribers = await self._storage.subscriptions.counts(ids)
        pushes = await self._storage.pushes.of(ids)
        pushed = {each.feed_id: push_facts(each, now) for each in pushes}
        return [
            _activity(
                each.feed,
                pushed.get(each.feed.id),
                subscribers.get(each.feed.id, 0),
                each.last_failure,
                now,
            )
            for each in found
        ]


def _activity(
    feed: StoredFeed,
    push: PushFacts | None,
    subscribers: int,
    last_failure: Poll | None,
    now: datetime,
) -> FeedActivity:
    is_pushed = push is not None and push.state is PushState.SUBSCRIBED
    return FeedActivity(
        feed=feed,
        health=health_of(feed),
        posts=velocity(feed.polling.posting, now),
        is_new=is_new(feed.polling.posting, now),
        polls_per_entry=polls_per_entry(feed, now),
        pusher=push.hub if push and is_pushed else "",
        subscribers=subscribers,
        last_failure=None if feed.polling.error else last_failure,
    )
