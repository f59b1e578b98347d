"""How late entries are, measured as they are committed and delivered.

Everything is in memory and bounded, and starts from nothing with each start of the hub.
A feed's delays up to the commit are also kept with the feed
(`hub.core.status.freshness`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from hub.core.status.freshness import DelayDigest, DelaySummary
from hub.runtime.caching import BoundedDict
from storage.records import FeedId, Position

MOST_AWAITED = 10_000
"""Records that no callback has answered with 2xx yet; beyond that the oldest are
dropped."""
MOST_FEEDS = 10_000
"""Feeds whose first deliveries are known; beyond that the one without any for the
longest time is dropped."""
MOST_RECORDS = 10_000
"""Records for which it is known when the first callback accepted them."""


class DelayObserver(Protocol):
    """What is needed of `hub.runtime.metrics.Histogram`."""

    def observe(self, seconds: float) -> None: ...


class _Awaited(NamedTuple):
    feed_id: FeedId
    committed: float  # monotonic
    entries: int


class FreshnessMeter:
    def __init__(
        self, publications: DelayObserver, first_deliveries: DelayObserver
    ) -> None:
        self._publications = publications
        self._first_deliveries = first_deliveries
        self.undated = 0
        """New entries without a believable date: their delays are not known."""
        self._awaited: BoundedDict[Position, _Awaited] = BoundedDict(MOST_AWAITED)
        self._of_feeds: BoundedDict[FeedId, DelayDigest] = BoundedDict(MOST_FEEDS)
        self._of_records: BoundedDict[Position, float] = BoundedDict(MOST_RECORDS)

    def publish(self, dates: Sequence[datetime], undated: int, now: datetime) -> None:
        """Entries published at these times, and so many without a believable date, are
        durable ``now``."""
        self.undated += undated
        for date in dates:
            seconds = max(0.0, (now - date).total_seconds())
            self._publications.observe(seconds)

    def expect_delivery(
        self, feed_id: FeedId, position: Position, entries: int, now: float
    ) -> None:
        """A record with so many entries was committed, and subscribers wait for it."""
        self._awaited[position] = _Awaited(feed_id, now, entries)

    def deliver(self, position: Position, monotonic: Callable[[], float]) -> None:
        """A callback accepted a record. Called for each delivery; only the first one
        counts."""
        awaited = self._awaited.pop(position, None)
        if awaited is None:
            return
        seconds = monotonic() - awaited.committed
        self._of_records[position] = seconds
        of_feed = self._of_feeds.get(awaited.feed_id) or DelayDigest()
        self._of_feeds[awaited.feed_id] = of_feed
        for _ in range(awaited.entries):
            self._first_deliveries.observe(seconds)
            of_feed.add(seconds)

    def to_delivery_of(self, feed_id: FeedId) -> DelaySummary:
        of_feed = self._of_feeds.get(feed_id)
        return DelaySummary() if of_feed is None else of_feed.summary()

    def to_delivery_of_record(self, position: Position) -> float | None:
        """Seconds from the record's commit to the first 2xx; None if not known here."""
        return self._of_records.get(position)


class MinuteRate:
    """The rate a second over about the last minute."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}  # by tens of seconds

    def add(self, count: int, now: float) -> None:
        slot = int(now // 10)
        if slot not in self._counts:
            recent = self._counts.items()
            self._counts = {at: known for at, known in recent if at > slot - 6}
        self._counts[slot] = self._counts.get(slot, 0) + count

    def per_second(self, now: float) -> float:
        first = int(now // 10) - 5
        return sum(count for at, count in self._counts.items() if at >= first) / 60
