"""How late entries are, as it is measured while the hub works."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hub.core.status.freshness import DelaySummary
from hub.runtime.freshness_meter import MOST_AWAITED, MOST_FEEDS, MinuteRate
from hub.runtime.metrics import Metrics
from storage.records import FeedId, Position
from tests.support.clock import ManualClock

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
FEED = FeedId(1)


def test_publications_are_counted_once_they_are_durable() -> None:
    metrics = Metrics()

    metrics.freshness.publish([NOW - timedelta(seconds=60)] * 3, 2, NOW)

    counts = {each.suffix: each.value for each in metrics.publications.family().samples}
    assert (counts["_count"], counts["_sum"]) == (3, 180)
    assert metrics.freshness.undated == 2


def test_the_first_delivery_of_a_record_counts_for_each_of_its_entries() -> None:
    metrics, clock = Metrics(), ManualClock()
    freshness = metrics.freshness
    freshness.expect_delivery(FEED, Position(7), 2, clock.monotonic())

    clock.advance(0.5)
    freshness.deliver(Position(7), clock.monotonic)
    clock.advance(60)
    freshness.deliver(Position(7), clock.monotonic)
    freshness.deliver(Position(8), clock.monotonic)  # of which nothing was expected

    expected = DelaySummary(entries=2, p50=0.512, p99=0.512)
    assert metrics.first_deliveries.total == 2
    assert freshness.to_delivery_of(FEED) == expected
    assert freshness.to_delivery_of(FeedId(2)) == DelaySummary()


def test_what_is_in_memory_is_bounded() -> None:
    metrics, clock = Metrics(), ManualClock()
    freshness = metrics.freshness
    for number in range(MOST_AWAITED + 1):
        freshness.expect_delivery(FEED, Position(number), 1, clock.monotonic())
    freshness.deliver(Position(0), clock.monotonic)
    assert metrics.first_deliveries.total == 0

    for number in range(1, MOST_FEEDS + 2):
        feed, position = FeedId(number), Position(100_000 + number)
        freshness.expect_delivery(feed, position, 1, clock.monotonic())
        freshness.deliver(position, clock.monotonic)
    assert freshness.to_delivery_of(FeedId(1)).entries == 0
    assert freshness.to_delivery_of(FeedId(2)).entries == 1


def test_a_rate_is_that_of_the_last_minute() -> None:
    rate = MinuteRate()
    rate.add(600, now=1_000.0)
    rate.add(600, now=1_001.0)

    assert rate.per_second(1_030.0) == 20
    assert rate.per_second(1_090.0) == 0
    rate.add(60, now=1_095.0)
    assert rate.per_second(1_095.0) == 1
