from __future__ import annotations

import pytest

from hub.core.schedule.poll_period import backoff

HOUR = 3600.0
DAY = 24 * HOUR


@pytest.mark.parametrize("code", [401, 403, 451])
def test_a_refusal_is_left_alone_for_six_hours_up_to_a_day(code: int) -> None:
    waits = [backoff(code, failures, HOUR).longest for failures in (1, 2, 3, 4, 90)]

    assert waits == [6 * HOUR, 12 * HOUR, DAY, DAY, DAY]


@pytest.mark.parametrize("code", [200, 301, 304, 400, 404, 410])
def test_where_no_feed_is_the_wait_doubles_from_an_hour(code: int) -> None:
    waits = [backoff(code, failures, 60).longest for failures in (1, 2, 5, 6, 5000)]

    assert waits == [HOUR, 2 * HOUR, 16 * HOUR, DAY, DAY]


@pytest.mark.parametrize("code", [0, 500, 502, 503, 599])
def test_without_an_answer_the_wait_is_drawn_from_five_minutes_up(code: int) -> None:
    pauses = [backoff(code, failures, HOUR) for failures in (1, 2, 9, 5000)]

    assert [pause.longest for pause in pauses] == [600, 1200, DAY, DAY]
    assert {pause.shortest for pause in pauses} == {300}


@pytest.mark.parametrize(
    ("failures", "period", "wait"),
    [(1, HOUR, 2 * HOUR), (2, HOUR, 4 * HOUR), (1, 60, HOUR), (1, DAY, DAY)],
)
def test_too_many_requests_double_the_interval_each_time(
    failures: int, period: float, wait: float
) -> None:
    assert backoff(429, failures, period).longest == wait
