"""How many polls may begin now."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.core.allowance import (
    AT_FIRST,
    HEADROOM,
    SAVED,
    Allowance,
    first_allowance,
    refilled,
    seconds_until_one,
)
from hub.core.budget import Budget

TEN = Budget(polls_per_second=10.0)
HOURLY = Budget(polls_per_second=1 / 3_600)


def test_a_start_begins_with_a_few_seconds_worth() -> None:
    assert first_allowance(TEN, 5.0) == Allowance(polls=10 * AT_FIRST, at=5.0)


def test_the_least_a_start_begins_with_is_one_poll() -> None:
    assert first_allowance(HOURLY, 0.0).polls == 1.0


def test_it_fills_a_little_faster_than_the_budget() -> None:
    assert refilled(Allowance(polls=0, at=0), TEN, 100).polls == pytest.approx(
        100 * 10 * HEADROOM
    )


@pytest.mark.parametrize(("budget", "most"), [(TEN, 10 * SAVED), (HOURLY, 4.0)])
def test_it_saves_what_some_hours_have(budget: Budget, most: float) -> None:
    assert refilled(Allowance(polls=0, at=0), budget, 1e9).polls == most


def test_it_tells_how_long_to_wait_for_a_poll() -> None:
    assert seconds_until_one(Allowance(polls=3, at=0), TEN) == 0.0
    assert seconds_until_one(Allowance(polls=-0.1, at=0), TEN) == pytest.approx(0.1)


@given(st.floats(-5, 100), st.floats(0.001, 1_000), st.floats(0, 1e5))
def test_after_the_wait_there_is_a_poll(polls: float, rate: float, at: float) -> None:
    budget = Budget(polls_per_second=rate)
    allowance = Allowance(polls=polls, at=at)

    later = at + seconds_until_one(allowance, budget)

    assert refilled(allowance, budget, later).polls > 0.999
