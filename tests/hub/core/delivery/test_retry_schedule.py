from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.core.delivery.retry_schedule import (
    FAILURES_ALLOWED,
    LONGEST_RETRY_AFTER,
    SCHEDULE,
    news_pause,
    retry_delay,
)

FAILURES = st.integers(1, FAILURES_ALLOWED)
JITTER = st.floats(0.0, 1.0)


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [
        *[(1, 5), (2, 15), (3, 45), (4, 120), (5, 300), (6, 1_800)],
        *[(7, 7_200), (8, 18_000), (9, 36_000), (10, 36_000)],
    ],
)
def test_the_schedule_is_the_documented_one(failures: int, seconds: float) -> None:
    assert retry_delay(failures, jitter=0.5) == pytest.approx(seconds)


@pytest.mark.parametrize("retry_after", [None, 60.0])
def test_the_eleventh_failure_is_the_last_whatever_the_callback_asks_for(
    retry_after: float | None,
) -> None:
    assert retry_delay(11, jitter=0.5, retry_after=retry_after) is None


@given(FAILURES, JITTER)
def test_jitter_stays_within_a_fifth(failures: int, jitter: float) -> None:
    delay = retry_delay(failures, jitter=jitter)
    assert delay is not None
    step = SCHEDULE[failures - 1]
    assert 0.8 * step - 1e-6 <= delay <= 1.2 * step + 1e-6


def test_the_schedule_never_grows_shorter() -> None:
    assert list(SCHEDULE) == sorted(SCHEDULE)


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [
        (None, 5.0),
        (0.0, 5.0),
        (-3.0, 5.0),  # a date in the past
        (4.0, 5.0),  # never sooner than the schedule
        (60.0, 60.0),
        (86_400.0, 86_400.0),
        (1e9, LONGEST_RETRY_AFTER),  # not in thirty years
    ],
)
def test_retry_after_is_honoured_within_bounds(
    retry_after: float | None, seconds: float
) -> None:
    delay = retry_delay(1, jitter=0.5, retry_after=retry_after)
    assert delay == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [(None, 10.0), (-3.0, 10.0), (4.0, 10.0), (60.0, 60.0), (1e9, 86_400.0)],
)
def test_news_is_no_try_for_ten_seconds_nor_while_the_callback_asked_for_peace(
    retry_after: float | None, seconds: float
) -> None:
    assert news_pause(retry_after) == seconds
