"""What the hub counts about itself."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from hub.runtime.metrics import Histogram, Metrics, Tally
from protocols.prometheus import MetricFamily
from storage.records import (
    Attempt,
    ChunkOutcome,
    DeliveryFlush,
    FeedId,
    FetchCommit,
    Polling,
    Position,
    SubscriptionId,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
COMMIT = FetchCommit(
    feed_id=FeedId(1),
    at=NOW,
    next_fetch=NOW,
    polling=Polling(code=200),
    title="",
    format="atom",
)


def numbers(family: MetricFamily) -> dict[str, float]:
    """By the value of the label, or the suffix and the value of it."""
    return {
        each.suffix + "".join(each.labels.values()): each.value
        for each in family.samples
    }


def attempt(status: int) -> Attempt:
    return Attempt(
        subscription_id=SubscriptionId(1),
        position=Position(1),
        at=NOW,
        status=status,
        milliseconds=30,
    )


def outcome(status: int) -> ChunkOutcome:
    return ChunkOutcome(chunk_id=1, lease_id=1, index=0, status=status, milliseconds=30)


@pytest.mark.parametrize(
    ("polling", "expected"),
    [
        (Polling(code=200), "fetched"),
        (Polling(code=304), "not_modified"),
        (Polling(code=404, error="answered 404"), "failed"),
        (Polling(code=200, error="no feed"), "failed"),
        (Polling(code=0, error="no such host"), "failed"),
    ],
)
def test_a_poll_is_counted_by_its_outcome(polling: Polling, expected: str) -> None:
    metrics = Metrics()
    metrics.count_poll(replace(COMMIT, polling=polling), 0.002)
    counted = numbers(metrics.polls.family())
    assert {name for name, number in counted.items() if number} == {expected}
    assert numbers(metrics.commits.family())["_count"] == 1


def test_each_request_to_a_callback_is_counted_once() -> None:
    metrics = Metrics()
    flush = DeliveryFlush(
        at=NOW,
        outcomes=(outcome(204), outcome(0), outcome(500)),
        attempts=(attempt(500), attempt(0), attempt(200)),
        ended=((SubscriptionId(1), "gone"),),
    )
    metrics.count_deliveries(flush, 0.002)
    assert numbers(metrics.deliveries.family()) == {
        "delivered": 2,
        "refused": 1,
        "unanswered": 1,
    }
    assert numbers(metrics.endings.family()) == {"given_up": 0, "gone": 1}
    assert numbers(metrics.answers.family())["_count"] == 3


def test_every_value_of_a_label_is_shown_from_the_start() -> None:
    tally = Tally("example", "Help.", "kind", ("a", "b"))
    tally.add("b", 2)
    assert numbers(tally.family()) == {"a": 0, "b": 2}
    assert tally["b"] == 2
    with pytest.raises(KeyError):
        tally.add("c")


@pytest.mark.parametrize(
    ("seconds", "bucket"), [(0.0, "0.1"), (0.1, "0.1"), (0.5, "1"), (9, "+Inf")]
)
def test_a_histogram_counts_in_the_first_bucket_that_holds_the_value(
    seconds: float, bucket: str
) -> None:
    histogram = Histogram("example", "Help.", (0.1, 1.0))
    histogram.observe(seconds)
    found = numbers(histogram.family())
    first = next(name for name, number in found.items() if number)
    assert first == f"_bucket{bucket}"
    assert found["_sum"] == seconds


def test_the_names_of_metrics_are_all_different() -> None:
    names = [each.name for each in Metrics().families()]
    assert len(names) == len(set(names))
