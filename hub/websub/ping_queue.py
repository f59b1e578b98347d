"""Publish pings: topics with news according to their publisher, fetched soon.

Nobody waits for the fetch. Equal pings that wait are combined, and one that comes while
its topic is being fetched causes another fetch, since the news may have come after the
answer. For all pings together, a topic is fetched a few times at once, and then once a
second.
"""

from __future__ import annotations

import asyncio
import heapq
from enum import StrEnum
from typing import Final, Protocol

from hub.limits.token_bucket import Rate, TokenBuckets
from hub.runtime.background import wait_for
from hub.runtime.clock import Clock
from storage.records import FeedId, PollReason, StoredFeed

MOST_WAITING = 10_000
"""Topics whose turn is yet to come; pings of more are turned away."""
OF_TOPIC: Final = Rate(per_second=1.0, burst=10.0)
MOST_KNOWN: Final = 100_000
"""Topics of which it is remembered how often they were pinged lately."""


class PingDecision(StrEnum):
    """What is done about a ping."""

    ACCEPTED = "accepted"
    COALESCED = "coalesced"  # a fetch that is yet to begin serves it too
    PUT_OFF = "put-off"  # too often: fetched a little later, if its server lets us
    REFUSED = "refused"  # too many topics wait


class PingedPoller(Protocol):
    """What is needed of `hub.ingest.poller.Poller`, which paces pings by host."""

    def ping(self, feed: StoredFeed, reason: PollReason) -> bool: ...

    def is_pinged(self, feed_id: FeedId) -> bool: ...

    @property
    def pinged(self) -> int: ...


class PingQueue:
    def __init__(self, poller: PingedPoller, clock: Clock) -> None:
        self._poller = poller
        self._clock = clock
        self._buckets: TokenBuckets[FeedId] = TokenBuckets(MOST_KNOWN)
        self._later: dict[FeedId, tuple[StoredFeed, PollReason]] = {}
        self._turns: list[tuple[float, FeedId]] = []
        self._awake = asyncio.Event()

    def add(
        self, feed: StoredFeed, reason: PollReason = PollReason.PINGED
    ) -> PingDecision:
        """Have the feed fetched soon, for a reason that its history tells."""
        if feed.id in self._later or self._poller.is_pinged(feed.id):
            return PingDecision.COALESCED
        if len(self._later) + self._poller.pinged >= MOST_WAITING:
            return PingDecision.REFUSED
        now = self._clock.monotonic()
        wait = self._buckets.of(feed.id, OF_TOPIC, now).reserve(now)
        if not wait:
            is_taken = self._poller.ping(feed, reason)
            return PingDecision.ACCEPTED if is_taken else PingDecision.PUT_OFF
        self._later[feed.id] = feed, reason
        heapq.heappush(self._turns, (now + wait, feed.id))
        self._awake.set()
        return PingDecision.PUT_OFF

    async def run(self) -> None:
        """Give those that were put off their turn, until cancelled."""
        while True:
            self._awake.clear()
            now = self._clock.monotonic()
            while self._turns and self._turns[0][0] <= now:
                _turn, feed_id = heapq.heappop(self._turns)
                self._poller.ping(*self._later.pop(feed_id))
            await wait_for(
                self._awake, self._turns[0][0] - now if self._turns else None
            )
