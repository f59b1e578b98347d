from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.records import PACES, UNKNOWN_PACE, lateness, pace_of

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("period", "pace"),
    [
        (0.0, UNKNOWN_PACE),
        (0.5, 0),
        (1.0, 0),
        (60.0, 5),
        (900.0, 9),
        (3_600.0, UNKNOWN_PACE),
        (86_400.0, 16),
        (2.0**21, PACES - 1),
        (1e12, PACES - 1),
    ],
)
def test_a_pace_is_the_power_of_two_that_a_period_begins_with(
    period: float, pace: int
) -> None:
    assert pace_of(period) == pace


@given(st.floats(1, 1e9), st.floats(1, 1e9))
def test_a_longer_period_is_never_a_faster_pace(one: float, other: float) -> None:
    assert pace_of(min(one, other)) <= pace_of(max(one, other))


@given(st.integers(0, 10**10), st.integers(0, PACES - 2))
def test_half_the_period_is_twice_as_late(milliseconds: int, pace: int) -> None:
    due = NOW - timedelta(milliseconds=milliseconds)

    assert lateness(due, pace, NOW) == 2 * lateness(due, pace + 1, NOW)
