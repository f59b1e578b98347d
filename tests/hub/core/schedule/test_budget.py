from __future__ import annotations

import heapq
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.core.schedule.budget import (
    LEAST_PRICE,
    MOST_PRICE,
    Budget,
    Spending,
    after_poll,
)

START = datetime(2026, 3, 2, tzinfo=UTC)
DAY = 86_400.0
TEN = Budget(polls_per_second=10.0)
HOURLY = Budget(polls_per_second=1 / 3_600)


def run(price: float, budget: Budget, days: float) -> tuple[float, Spending]:
    """Forty feeds polled by the root rule at the steered price; the polls a day and
    feed in the last third."""
    spending = Spending(price=price, at=START)
    rates = [0.1 * 1.15**number / DAY for number in range(40)]
    due = [(3_600.0 * number / 40, rate, 0.0) for number, rate in enumerate(rates)]
    heapq.heapify(due)
    late = 0
    while (poll := heapq.heappop(due))[0] < days * DAY:
        at, rate, last = poll
        moment = START + timedelta(seconds=at)
        spending = after_poll(spending, budget, at - last, moment)
        wait = min(sqrt(2 * spending.price / rate), DAY)
        heapq.heappush(due, (at + wait, rate, at))
        late += at > days * DAY * 2 / 3
    return late / (days / 3) / len(rates), spending


@pytest.mark.parametrize("first_price", [3, 75, 3_000])
@pytest.mark.parametrize(
    "budget",
    [Budget(), Budget(polls_per_second=48 * 40 / DAY)],
    ids=["48 a feed and day", "so many a second"],
)
def test_polls_come_to_the_budget_within_3_percent(
    first_price: float, budget: Budget
) -> None:
    polls_a_day, spending = run(first_price, budget, days=30)

    assert polls_a_day == pytest.approx(48, rel=0.03)
    assert spending.share == pytest.approx(1, abs=0.03)


def test_a_larger_budget_has_a_lower_price() -> None:
    prices = [
        run(75, Budget(polls_per_feed_day=polls), days=20)[1].price
        for polls in (12, 24, 48)
    ]

    assert all(earlier > later for earlier, later in pairwise(prices))


@given(
    st.floats(LEAST_PRICE, MOST_PRICE),
    st.floats(0, 1e9),
    st.floats(-1e3, 1e9),
    st.floats(0, 100),
)
def test_the_price_has_bounds(
    price: float, gap: float, passed: float, a_second: float
) -> None:
    before = Spending(price=price, at=START)
    later = START + timedelta(seconds=passed)

    after = after_poll(before, Budget(polls_per_second=a_second), gap, later)

    assert LEAST_PRICE <= after.price <= MOST_PRICE
    assert after.at == later
