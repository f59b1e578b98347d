from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from hub.core.schedule.budget import Budget
from hub.core.schedule.posting_profile import NOTHING_KNOWN, count_habits, prior_of
from hub.ingest.poll_budget import (
    AT_FIRST,
    HEADROOM,
    SAVED,
    PollBudget,
    poll_tokens,
)
from hub.limits.token_bucket import TokenBucket
from storage.records import Polling, StoredFeed
from tests.support.fetch_targets import START, a_feed

HOUR = timedelta(hours=1)


def a_feed_of(last_fetch: datetime, next_fetch: datetime) -> StoredFeed:
    return a_feed(polling=Polling(last_fetch=last_fetch), next_fetch=next_fetch)


def test_the_first_price_is_that_of_the_rules() -> None:
    assert PollBudget(Budget(), 75).planning_context().price == 75


def test_after_a_start_the_price_goes_on_where_a_feed_left_it() -> None:
    accounts = PollBudget(Budget(), 75)
    for price in (0.0, 20.0, 30.0):
        accounts.resume(price)

    assert accounts.planning_context().price == 20


def test_polls_beyond_the_budget_raise_the_price() -> None:
    accounts = PollBudget(Budget(), 75)
    for number in range(500):
        now = START + number * HOUR / 100
        accounts.count(a_feed_of(now - HOUR / 10, now), now)

    assert accounts.planning_context().price > 75


@pytest.mark.parametrize(
    "polling",
    [Polling(), Polling(last_fetch=START, settling_since=START)],
    ids=["its first fetch", "those by which it settles in"],
)
def test_what_a_new_feed_takes_costs_nothing(polling: Polling) -> None:
    accounts = PollBudget(Budget(), 75)
    for number in range(500):
        accounts.count(a_feed(polling=polling), START + number * HOUR / 100)

    assert accounts.planning_context().price == 75


def test_time_in_which_a_feed_was_overdue_is_no_allowance() -> None:
    """As many feeds are polled as are planned for: the price stays."""
    accounts = PollBudget(Budget(polls_per_feed_day=24), 75)
    standstill = timedelta(days=3)
    for number in range(500):
        now = START + standstill + number * HOUR / 100
        accounts.count(a_feed_of(START - HOUR, START), now)

    assert accounts.planning_context().price == pytest.approx(75)


def test_a_feed_that_was_pinged_was_watched_until_then() -> None:
    planned, pinged = PollBudget(Budget(), 75), PollBudget(Budget(), 75)
    for number in range(50):
        now = START + number * HOUR
        planned.count(a_feed_of(now - HOUR / 2, now), now)
        pinged.count(a_feed_of(now - HOUR / 2, now + HOUR), now)

    assert pinged.planning_context() == planned.planning_context()


def test_the_habits_of_all_stay_while_the_price_moves() -> None:
    accounts = PollBudget(Budget(), 75)
    prior = prior_of([(count_habits(NOTHING_KNOWN, [START.timestamp()]), 20)])

    accounts.expect_profile(prior)
    accounts.resume(20.0)
    accounts.count(a_feed_of(START - HOUR, START), START)

    assert accounts.planning_context().prior == prior


# --- polls that may begin ---

TEN = Budget(polls_per_second=10.0)
HOURLY = Budget(polls_per_second=1 / 3_600)


def tokens(budget: Budget) -> TokenBucket:
    found = poll_tokens(budget, 0.0)
    assert found is not None
    return found


def test_without_a_budget_a_second_any_poll_may_begin() -> None:
    assert poll_tokens(Budget(polls_per_feed_day=24.0), 0.0) is None


def test_a_start_begins_with_a_few_seconds_worth_of_polls_and_with_one_at_least() -> (
    None
):
    assert tokens(TEN).left(0.0) == 10 * AT_FIRST
    assert tokens(HOURLY).left(0.0) == 1.0


def test_polls_come_back_a_little_faster_than_the_budget() -> None:
    spent = 10 * AT_FIRST
    assert tokens(TEN).left(100.0) == pytest.approx(spent + 100 * 10 * HEADROOM)


@pytest.mark.parametrize(("budget", "most"), [(TEN, 10 * SAVED), (HOURLY, 4.0)])
def test_what_some_hours_have_is_saved(budget: Budget, most: float) -> None:
    assert tokens(budget).left(1e9) == most
