from __future__ import annotations

from datetime import timedelta

from hub.core.budget import Budget
from hub.core.habits import NOTHING_KNOWN, count_habits, prior_of
from hub.polling.accounts import Accounts
from tests.support.fetch_targets import START

HOUR = timedelta(hours=1)


def test_the_first_price_is_that_of_the_rules() -> None:
    assert Accounts(Budget(), 75).outlook().price == 75


def test_after_a_start_the_price_goes_on_where_a_feed_left_it() -> None:
    accounts = Accounts(Budget(), 75)
    for price in (0.0, 20.0, 30.0):
        accounts.resume(price)

    assert accounts.outlook().price == 20


def test_polls_beyond_the_budget_raise_the_price() -> None:
    accounts = Accounts(Budget(), 75)
    for number in range(500):
        now = START + number * HOUR / 100
        accounts.count(now - HOUR / 10, now)

    assert accounts.outlook().price > 75


def test_a_first_fetch_costs_nothing() -> None:
    accounts = Accounts(Budget(), 75)
    for number in range(500):
        accounts.count(None, START + number * HOUR)

    assert accounts.outlook().price == 75


def test_the_habits_of_all_stay_while_the_price_moves() -> None:
    accounts = Accounts(Budget(), 75)
    prior = prior_of(count_habits(NOTHING_KNOWN, [START.timestamp()]))

    accounts.expect_habits(prior)
    accounts.resume(20.0)
    accounts.count(START - HOUR, START)

    assert accounts.outlook().prior == prior
