"""Credits count down from where they stood."""

from __future__ import annotations

from hub.delivery.notification_counter import GIVEN, NotificationCounter
from storage.records import ANONYMOUS, OPERATOR


def test_they_go_on_from_where_they_stood() -> None:
    credits = NotificationCounter({OPERATOR: 41})
    assert credits.take(OPERATOR) == GIVEN - 42
    assert credits.changes() == ((OPERATOR, 1),)
    assert credits.changes() == ()


def test_what_was_counted_before_they_were_read_is_added() -> None:
    credits = NotificationCounter()
    credits.take(OPERATOR)
    credits.resume({OPERATOR: 41})
    assert credits.take(OPERATOR) == GIVEN - 43


def test_the_open_hub_has_none() -> None:
    credits = NotificationCounter()
    assert credits.take(ANONYMOUS) is None
    assert credits.changes() == ()


def test_used_up_they_begin_anew() -> None:
    credits = NotificationCounter({OPERATOR: GIVEN - 2})
    assert [credits.take(OPERATOR) for _ in range(3)] == [1, GIVEN, GIVEN - 1]
