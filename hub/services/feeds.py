"""Feeds: add, look at, fetch now, pause, resume, remove."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from hub.clock import Clock
from hub.core.cadence import Plan
from hub.core.explanation import Explanation, explain_plan
from hub.services.addresses import AddressCheck
from hub.services.errors import Conflict
from hub.services.topics import read_topic
from protocols.errors import InvalidValue
from storage.errors import NotFound
from storage.interface import Storage
from storage.records import (
    FEED_REMOVED,
    Credentials,
    FeedId,
    FeedState,
    NewFeed,
    StoredFeed,
)

LONGEST_WAIT = 20.0
"""Seconds a caller may wait for a fetch; the fetch itself goes on."""
LONGEST_SECTION = 200
END_PAGE = 500
"""Subscriptions ended per transaction when their feed is removed."""


class FeedPoller(Protocol):
    """What the use cases need of `hub.polling.poller.Poller`."""

    async def fetch_now(self, feed_id: FeedId) -> StoredFeed:
        """Fetch, or join the fetch under way; the feed as it is afterwards."""
        ...

    def explain(self, feed: StoredFeed) -> Plan:
        """The period as it was planned after the last fetch, term by term."""
        ...

    def wake(self) -> None:
        """Something became due sooner than the poller knows."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedReport:
    """A feed with what explains it."""

    feed: StoredFeed
    subscribers: int
    plan: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class AddFeed:
    url: str
    private: bool = False
    section: str = ""
    credentials: Credentials | None = None
    wait: float = LONGEST_WAIT  # seconds; 0: do not wait for the first fetch


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedFeed:
    feed: StoredFeed
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshedFeed:
    """``is_fetched`` is False while the server must be left alone, or still answers."""

    feed: StoredFeed
    is_fetched: bool


class FeedService:
    def __init__(
        self,
        storage: Storage,
        poller: FeedPoller,
        addresses: AddressCheck,
        clock: Clock,
        on_hide: Callable[[], None] | None = None,
    ) -> None:
        """``on_hide`` is called when a feed was removed, or may have become private."""
        self._on_hide = on_hide or (lambda: None)
        self._storage = storage
        self._poller = poller
        self._addresses = addresses
        self._clock = clock

    async def add(self, request: AddFeed, *, field: str = "url") -> AddedFeed:
        """Register a feed and wait a little for its first fetch.

        However that ends, the feed stays registered, with the outcome as its status.
        Raises `InvalidValue` and `AddressRefused`, which name the ``field``.
        """
        topic = read_topic(field, request.url)
        _check_section(request.section)
        await self._addresses.check_topic(field, topic.url)
        credentials = request.credentials or topic.credentials
        feed, is_new = await self._storage.feeds.add(
            NewFeed(
                url=topic.url,
                private=request.private or credentials is not None,
                section=request.section,
                credentials=credentials,
            ),
            self._clock.now(),
        )
        self._poller.wake()
        if feed.private and not is_new:
            self._on_hide()
        if feed.polling.last_fetch is None:
            feed = await self._first_fetch(feed, request.wait)
        return AddedFeed(feed=feed, is_new=is_new)

    async def get(self, feed_id: FeedId) -> FeedReport:
        """Raises `NotFound`."""
        feed = await self._existing(feed_id)
        return FeedReport(
            feed=feed,
            subscribers=await self._storage.subscriptions.count(feed_id),
            plan=self._poller.explain(feed),
        )

    async def explain(self, feed_id: FeedId) -> tuple[StoredFeed, Explanation]:
        """A feed, and why it is polled when it is. Raises `NotFound`."""
        feed = await self._existing(feed_id)
        return feed, explain_plan(feed, self._poller.explain(feed))

    async def find(self, url: str) -> StoredFeed | None:
        """The feed behind a topic URL in any spelling, unless it was removed."""
        try:
            topic = read_topic("url", url)
        except InvalidValue:
            return None
        feed = await self._storage.feeds.find(topic.url)
        return None if feed is None or feed.state is FeedState.REMOVED else feed

    async def page(
        self, *, after: FeedId, limit: int, state: FeedState | None = None
    ) -> Sequence[StoredFeed]:
        return await self._storage.feeds.page(after=after, limit=limit, state=state)

    async def fetch(self, feed_id: FeedId) -> RefreshedFeed:
        """Fetch now; the feed as it is afterwards, or after the longest wait.

        Raises `NotFound`, and `Conflict` for a feed that was removed.
        """
        feed = await self._existing(feed_id)
        if feed.state is FeedState.REMOVED:
            raise Conflict(f"feed {feed_id} was removed; add it again first")
        fresh = await self._wait_for_fetch(feed, LONGEST_WAIT)
        is_fetched = fresh.polling.last_fetch != feed.polling.last_fetch
        return RefreshedFeed(feed=fresh, is_fetched=is_fetched)

    async def pause(self, feed_id: FeedId) -> StoredFeed:
        return await self._change(feed_id, FeedState.PAUSED)

    async def resume(self, feed_id: FeedId) -> StoredFeed:
        """Poll again, when it was due anyway; believes anew one that was given up."""
        feed = await self._change(feed_id, FeedState.ACTIVE)
        self._poller.wake()
        return feed

    async def remove(self, feed_id: FeedId) -> int:
        """Remove a feed and end its subscriptions; how many were ended.

        What an interruption leaves of it, housekeeping finishes.
        """
        now = self._clock.now()
        await self._storage.feeds.set_state(feed_id, FeedState.REMOVED, now)
        self._on_hide()
        ended = 0
        while True:
            page = await self._storage.subscriptions.end_all(
                feed_id, FEED_REMOVED, now, END_PAGE
            )
            ended += page
            if page < END_PAGE:
                return ended

    async def _existing(self, feed_id: FeedId) -> StoredFeed:
        feed = await self._storage.feeds.get(feed_id)
        if feed is None:
            raise NotFound("feed", feed_id)
        return feed

    async def _change(self, feed_id: FeedId, state: FeedState) -> StoredFeed:
        feed = await self._existing(feed_id)
        if feed.state is FeedState.REMOVED:
            raise Conflict(f"feed {feed_id} was removed; add it again first")
        return await self._storage.feeds.set_state(feed_id, state, self._clock.now())

    async def _first_fetch(self, feed: StoredFeed, wait: float) -> StoredFeed:
        if wait <= 0 or feed.state is not FeedState.ACTIVE:
            return feed
        return await self._wait_for_fetch(feed, min(wait, LONGEST_WAIT))

    async def _wait_for_fetch(self, feed: StoredFeed, seconds: float) -> StoredFeed:
        try:
            async with asyncio.timeout(seconds):
                return await self._poller.fetch_now(feed.id)
        except TimeoutError:
            return await self._storage.feeds.get(feed.id) or feed


def _check_section(section: str) -> None:
    if len(section) > LONGEST_SECTION or not section.isprintable():
        expected = f"at most {LONGEST_SECTION} printable characters"
        raise InvalidValue("section", expected)
