from __future__ import annotations

from datetime import timedelta

import pytest

from hub.delivery.asked_retries import AskedRetries
from storage.records import Position, RetryingSubscription, SubscriptionId
from tests.support.subscriptions import START, a_subscription

ASKED_AT = START + timedelta(microseconds=300)
"""Storage keeps it as `START`."""


def due(seconds: float = 0.0) -> RetryingSubscription:
    return RetryingSubscription(
        subscription=a_subscription(),
        position=Position(1),
        attempts=1,
        next_try=START + timedelta(seconds=seconds),
        failing_since=START,
        last_status=500,
        last_error="answered 500",
    )


@pytest.mark.parametrize(("seconds", "is_asked"), [(0.0, True), (5.0, False)])
def test_what_was_asked_for_begins_once_at_that_moment(
    seconds: float, is_asked: bool
) -> None:
    asked = AskedRetries()
    assert not asked.take(due())
    asked.note(a_subscription().id, ASKED_AT)
    assert [asked.take(due(seconds)) for _ in range(2)] == [is_asked, False]


def test_of_too_many_the_oldest_are_forgotten() -> None:
    asked = AskedRetries(capacity=2)
    for number in (1, 2, 1, 3):
        asked.note(SubscriptionId(number), ASKED_AT)
    assert asked.take(due())
    asked.note(SubscriptionId(1), ASKED_AT)
    asked.note(SubscriptionId(4), ASKED_AT)
    asked.note(SubscriptionId(5), ASKED_AT)
    assert not asked.take(due())
