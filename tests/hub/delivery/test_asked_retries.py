from __future__ import annotations

from hub.delivery.asked_retries import AskedRetries
from storage.records import SubscriptionId

ONE = SubscriptionId(1)


def test_what_was_asked_for_begins_once() -> None:
    asked = AskedRetries()
    assert not asked.take(ONE)
    asked.note(ONE)
    assert [asked.take(ONE) for _ in range(2)] == [True, False]


def test_one_that_was_under_way_is_forgotten() -> None:
    asked = AskedRetries()
    asked.note(ONE)
    asked.forget(ONE)
    assert not asked.take(ONE)


def test_of_too_many_the_oldest_are_forgotten() -> None:
    asked = AskedRetries(capacity=2)
    for number in (1, 2, 1, 3):
        asked.note(SubscriptionId(number))
    assert [asked.take(SubscriptionId(each)) for each in (1, 2, 3)] == [
        True,
        False,
        True,
    ]
