"""Publish pings: topics that have news according to their publisher, fetched soon.

Nobody waits for the fetch. Equal pings that wait are combined. A ping that comes while
its topic is being fetched causes another fetch, since the news may have come after the
answer. However many pings there are, a topic is fetched a few times at once, and after
that once a second.
"""

from __future__ import annotations

import asyncio
import heapq
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

from hub.limits.token_bucket import Rate, TokenBuckets
from hub.runtime.background import wait_for
from hub.runtime.clock import Clock
from storage.records import FeedId, PollReason, StoredFeed

if TYPE_CHECKING:
    from hub.runtime.telemetry import Traces

MOST_WAITING = 10_000
"""Topics that wait for their turn; pings of any more are refused."""
OF_TOPIC: Final = Rate(per_second=1.0, burst=10.0)
MOST_KNOWN: Final = 100_000
"""Topics of which it is remembered how often they were pinged lately."""


class PingDecision(StrEnum):
    """What is done about a ping."""

    ACCEPTED = "accepted"
    COALESCED = "coalesced"  # served by a fetch that is yet to begin
    PUT_OFF = "put-off"  # too often: fetched a little later, if its server permits
    REFUSED = "refused"  # too many topics wait


class PingedPoller(Protocol):
    """The part of `hub.ingest.poller.Poller` that is needed here; it paces pings by
    host."""

    def ping(self, feed: StoredFeed, reason: PollReason) -> bool: ...

    def is_pinged(self, feed_id: FeedId) -> bool: ...

    @property
    def pinged(self) -> int: ...


class PingQueue:
    def __init__(
        self, poller: PingedPoller, clock: Clock, traces: Traces | None = None
    ) -> None:
        self._traces = traces
        self._poller = poller
        self._clock = clock
        self._buckets: TokenBuckets[FeedId] = TokenBuckets(MOST_KNOWN)
        self._later: dict[FeedId, tuple[StoredFeed, PollReason]] = {}
        self._turns: list[tuple[float, FeedId]] = []
        self._awake = asyncio.Event()

    def add(
        self, feed: StoredFeed, reason: PollReason = PollReason.PINGED
    ) -> PingDecision:
        """Have the feed fetched soon; ``reason`` is shown in the feed's history."""
        if self._traces:
            self._traces.note_cause(feed.id)
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
        """Ping topics that were put off when their turn comes, until cancelled."""
        while True:
            self._awake.clear()
            now = self._clock.monotonic()
            while self._turns and self._turns[0][0] <= now:
                _turn, feed_id = heapq.heappop(self._turns)
                self._poller.ping(*self._later.pop(feed_id))
            await wait_for(
                self._awake, self._turns[0][0] - now if self._turns else None
            )
