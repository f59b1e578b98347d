"""What the poller works with, in memory: storage, and the pace of hosts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from hub.limits.host_limiter import HostLimiter
from hub.runtime.clock import Clock
from protocols.urls import resource_url
from storage.errors import StorageError
from storage.records import (
    CommitOutcome,
    DueFeed,
    FeedId,
    FeedState,
    FetchCommit,
    FetchTarget,
    PlaceByPace,
    Posting,
    Stored,
    StoredFeed,
)
from tests.support.fetch_targets import a_feed, a_target
from tests.support.memory.feeds import the_latest


class PolledStorage:
    """Feeds and a log in memory, as far as polling needs them; counts its reads."""

    def __init__(self) -> None:
        self.known: dict[FeedId, FetchTarget] = {}
        self.commits: list[FetchCommit] = []
        self.deferred: list[tuple[FeedId, datetime]] = []
        self.held: dict[str, datetime] = {}
        self.reads: Counter[str] = Counter()
        self.failure: StorageError | None = None
        self.commit_failure: StorageError | None = None

    @property
    def feeds(self) -> PolledStorage:
        return self

    @property
    def log(self) -> PolledStorage:
        return self

    @property
    def sites(self) -> PolledStorage:
        return self

    async def state(self, feed_id: FeedId) -> bytes:
        """The state of a site, of which none was ever read."""
        return b""

    def put(self, feed: StoredFeed) -> None:
        self.known[feed.id] = a_target(feed)

    def feed(self, number: int) -> StoredFeed:
        return self.known[FeedId(number)].feed

    def change(self, number: int, **changes: Any) -> None:
        target = self.known[FeedId(number)]
        self.known[FeedId(number)] = replace(
            target,
            feed=replace(target.feed, **changes),
        )

    async def get(self, feed_id: FeedId) -> StoredFeed | None:
        target = self.known.get(feed_id)
        return target.feed if target else None

    async def find(self, topic: str) -> StoredFeed | None:
        resource = resource_url(topic)
        feeds = (target.feed for target in self.known.values())
        return next(
            (each for each in feeds if resource_url(each.url) == resource), None
        )

    async def due(
        self, now: datetime, *, after: PlaceByPace, limit: int
    ) -> list[DueFeed]:
        self._read("due")
        return the_latest(self._active(), now, after)[:limit]

    async def next_due(self) -> datetime | None:
        self._read("next_due")
        return min((feed.next_fetch for feed in self._active()), default=None)

    async def spread(
        self, now: datetime, *, longest: timedelta, per_second: float
    ) -> int:
        self._read("spread")
        return 0

    async def defer(self, moves: Sequence[tuple[FeedId, datetime]]) -> None:
        self._read("defer")
        self.deferred += moves
        for feed_id, moment in moves:
            self.change(feed_id, next_fetch=moment)

    async def hold_hosts(
        self, holds: Sequence[tuple[str, datetime]], now: datetime
    ) -> None:
        self.held |= dict(holds)

    async def held_hosts(self, now: datetime) -> list[tuple[str, datetime]]:
        return list(self.held.items())

    async def targets(self, ids: Sequence[FeedId]) -> list[FetchTarget]:
        self._read("targets")
        return [self.known[feed_id] for feed_id in ids if feed_id in self.known]

    async def postings(self, limit: int) -> list[Posting]:
        self._read("postings")
        postings = [each.feed.polling.posting for each in self.known.values()]
        return [each for each in postings if each.habits][:limit]

    async def commit(self, fetch: FetchCommit) -> CommitOutcome:
        if self.commit_failure:
            raise self.commit_failure
        self._read("commit")
        self.commits.append(fetch)
        target = self.known[fetch.feed_id]
        feed = replace(
            target.feed,
            polling=fetch.polling,
            next_fetch=fetch.next_fetch,
            state=fetch.state or target.feed.state,
            format=fetch.format or target.feed.format,
            title=fetch.title or target.feed.title,
        )
        seen = fetch.seen if fetch.seen is not None else target.seen
        slices = fetch.slices if fetch.slices is not None else target.slices
        inventory = target.inventory if fetch.inventory is None else fetch.inventory
        self.known[fetch.feed_id] = replace(
            target, feed=feed, seen=seen, slices=slices, inventory=inventory
        )
        return Stored((), target.version)

    async def check(self) -> None:
        self._read("check")
        if self.commit_failure:
            raise self.commit_failure

    def _active(self) -> list[StoredFeed]:
        return [
            target.feed
            for target in self.known.values()
            if target.feed.state is FeedState.ACTIVE
        ]

    def _read(self, what: str) -> None:
        if self.failure:
            raise self.failure
        self.reads[what] += 1


def a_limiter(
    clock: Clock, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> HostLimiter:
    """A limiter that does not delay requests to hosts ending in ``.exempt``."""
    return HostLimiter(clock, lambda host: host.endswith(".exempt"), sleep=sleep)


async def take_no_time(seconds: float) -> None:
    """A sleep for a clock that only a test advances."""
    await asyncio.sleep(0)


def feeds_of_hosts(count: int, suffix: str = "example") -> list[StoredFeed]:
    """Feeds of so many hosts, one each, all due."""
    return [a_feed(n, f"https://h{n}.{suffix}/feed") for n in range(1, count + 1)]
