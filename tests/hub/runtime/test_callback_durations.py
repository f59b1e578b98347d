"""Which callbacks take long, by their latest requests."""

from __future__ import annotations

from datetime import UTC, datetime

from hub.runtime.callback_durations import (
    NOTICED_MILLISECONDS,
    REQUESTS,
    CallbackDurations,
    by_callback,
)
from storage.records import SubscriptionId, TimedRequest


def note(
    durations: CallbackDurations, id: int, *taken: int, is_delivered: bool = True
) -> None:
    for each in taken:
        durations.note(SubscriptionId(id), each, at=60.0, is_delivered=is_delivered)


def order(durations: CallbackDurations) -> list[tuple[int, int]]:
    found = durations.slowest(9)
    return [(each.subscription_id, each.median_milliseconds) for each in found]


def test_those_that_are_slow_each_time_come_before_those_that_were_slow_once() -> None:
    durations = CallbackDurations()
    note(durations, 1, 20_000, 5, 5)
    note(durations, 2, 4_001, 4_000, 4_025)
    note(durations, 3, 5, NOTICED_MILLISECONDS - 1)
    assert order(durations) == [(2, 4_001), (1, 5)]
    [slowest] = durations.slowest(1)
    assert (slowest.requests, slowest.failed) == (3, 0)
    assert slowest.slowest_milliseconds == 4_025
    assert slowest.last.timestamp() == 60.0


def test_only_the_latest_requests_count_failed_ones_included() -> None:
    durations = CallbackDurations()
    note(durations, 1, *[20_000] * REQUESTS)
    note(durations, 1, *[300] * (REQUESTS - 1), is_delivered=False)
    [found] = durations.slowest(9)
    assert (found.median_milliseconds, found.slowest_milliseconds) == (300, 20_000)
    assert (found.requests, found.failed) == (REQUESTS, REQUESTS - 1)


def test_who_was_slow_once_is_left_out_when_all_that_is_remembered_was_fast() -> None:
    durations = CallbackDurations()
    note(durations, 1, 900, *[NOTICED_MILLISECONDS - 1] * (REQUESTS - 1))
    assert order(durations) == [(1, NOTICED_MILLISECONDS - 1)]
    note(durations, 1, 5)
    assert order(durations) == []
    note(durations, 1, NOTICED_MILLISECONDS)
    assert order(durations) == [(1, NOTICED_MILLISECONDS - 1)]


def test_of_too_many_the_fastest_are_dropped() -> None:
    durations = CallbackDurations(capacity=4)
    for id, taken in ((1, 400), (2, 200), (3, 300), (4, 500), (5, 250)):
        note(durations, id, taken)
    assert order(durations) == [(4, 500), (1, 400), (3, 300), (5, 250)]


def earlier(id: int, taken: int, unix: float) -> TimedRequest:
    return TimedRequest(
        subscription_id=SubscriptionId(id),
        at=datetime.fromtimestamp(unix, UTC),
        milliseconds=taken,
        is_delivered=False,
    )


def test_requests_of_before_come_before_those_that_were_noted() -> None:
    durations = CallbackDurations(capacity=3)
    note(durations, 1, *[300] * (REQUESTS - 1))
    note(durations, 2, 150)
    requests = [
        earlier(1, 900, 59),
        earlier(3, 5, 58),
        earlier(2, 50, 57),
        earlier(3, 700, 56),
        earlier(1, 20_000, 55),
        earlier(4, NOTICED_MILLISECONDS - 1, 54),
    ]
    durations.add_earlier(by_callback(requests))
    assert order(durations) == [(3, 700), (1, 300), (2, 150)]
    third, first, second = durations.slowest(9)
    assert (first.requests, first.failed, first.slowest_milliseconds) == (16, 1, 900)
    assert (second.requests, second.failed) == (2, 1)
    assert [each.last.timestamp() for each in (first, third)] == [60, 58]
    note(durations, 1, 400)  # the oldest makes room
    assert durations.slowest(2)[1].slowest_milliseconds == 400


def test_requests_of_before_take_no_more_room_than_others() -> None:
    durations = CallbackDurations(capacity=4)
    requests = [earlier(id, 100 * id, 9) for id in range(1, 9)]
    durations.add_earlier(by_callback(requests))
    assert order(durations) == [(8, 800), (7, 700), (6, 600), (5, 500)]


def test_many_requests_of_before_replace_nothing_that_was_noted() -> None:
    durations = CallbackDurations(capacity=8)
    for id in range(1, 6):
        note(durations, id, 110)
    requests = [earlier(id, 120, 59) for id in range(1, 13)]
    requests += [earlier(id, 9_000 + id, 9) for id in range(1, 13)]
    requests += [earlier(id, 130, 8) for id in range(1, 13)]
    durations.add_earlier(by_callback(requests))
    found = durations.slowest(99)
    of_each = {each.subscription_id: each.requests for each in found}
    assert sorted(of_each.values()) == [3, 3, 3, 4, 4, 4, 4, 4]
    assert [of_each[SubscriptionId(id)] for id in range(1, 6)] == [4] * 5
    assert {each.last.timestamp() for each in found} == {59, 60}


def test_what_was_dropped_does_not_come_back_by_requests_of_before() -> None:
    durations = CallbackDurations(capacity=8)
    for id in range(1, 10):
        note(durations, id, 100 * id)
    kept = [(id, 100 * id) for id in range(9, 2, -1)]
    assert order(durations) == kept
    durations.add_earlier(by_callback([earlier(1, 9_000, 9)]))
    assert order(durations) == kept
