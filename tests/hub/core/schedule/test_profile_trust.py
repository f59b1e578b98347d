"""Habits are believed as far as they have foretold the posts that came."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hub.core.schedule.posting_profile import (
    FIRST_TRUST,
    LEAST_TRUST,
    MOST_TRUST,
    NOTHING_KNOWN,
    Profile,
    count_habits,
    pack_habits,
    prior_of,
    read_habits,
    trust_after,
)

TUESDAY = datetime(2026, 3, 3, 8, 1, tzinfo=UTC).timestamp()
HOUR, DAY = 3_600, 86_400
EVEN = prior_of(())
DAILY = [TUESDAY + DAY * day for day in range(30)]


def at_any_time(posts: int, seed: int = 1) -> list[float]:
    draw = Random(seed)
    return sorted(TUESDAY + draw.uniform(0, 60) * DAY for _ in range(posts))


def test_what_was_foretold_earns_trust_and_what_was_not_costs_it() -> None:
    assert trust_after(0.5, 3) == pytest.approx(0.75, abs=1e-3)
    assert trust_after(0.5, 1) == 0.5
    assert trust_after(0.5, 1 / 3) == pytest.approx(0.25, abs=1e-3)


@given(st.lists(st.floats(0.01, 200), max_size=50))
def test_trust_has_bounds(factors: list[float]) -> None:
    trust = FIRST_TRUST
    for factor in factors:
        trust = trust_after(trust, factor)
        assert LEAST_TRUST <= trust <= MOST_TRUST


def test_a_feed_that_posts_at_one_hour_is_believed() -> None:
    hours, weekdays, minutes = count_habits(NOTHING_KNOWN, DAILY).trust

    assert hours == minutes == MOST_TRUST
    assert weekdays < 0.8  # it posts on all of them


def test_feeds_that_post_at_any_time_are_not() -> None:
    """Most of them: some look regular by chance."""
    trust = [
        count_habits(NOTHING_KNOWN, at_any_time(60, seed)).trust for seed in range(30)
    ]

    for habit in zip(*trust, strict=True):
        assert median(habit) < 0.3


def test_what_comes_together_is_judged_once() -> None:
    """Else the second of fifty would show that the first was a habit."""
    imports = at_any_time(12)
    posts = [each for each in imports for _ in range(50)]
    shares = [1 / (number % 50 + 1) for number in range(len(posts))]

    together = count_habits(NOTHING_KNOWN, posts, shares)

    assert together.trust[0] < 0.3
    assert count_habits(NOTHING_KNOWN, posts).trust[0] == MOST_TRUST


def test_a_feed_that_loses_its_habit_is_believed_no_longer() -> None:
    habits = count_habits(NOTHING_KNOWN, DAILY)
    later = [post + 30 * DAY for post in at_any_time(20)]

    assert habits.trust[0] == MOST_TRUST
    assert count_habits(habits, later).trust[0] < 0.5


def test_habits_that_are_not_believed_count_for_less() -> None:
    habits = count_habits(NOTHING_KNOWN, DAILY)
    doubted = replace(habits, trust=(LEAST_TRUST,) * 3)
    believed, less = (Profile(own=own, prior=EVEN) for own in (habits, doubted))

    assert believed.at(TUESDAY) > 2 * less.at(TUESDAY) > 2
    assert believed.steps()[0] > 2 * less.steps()[0] > 2


def test_the_state_of_before_there_was_trust_is_read() -> None:
    habits = count_habits(NOTHING_KNOWN, DAILY)

    old = read_habits(pack_habits(habits)[:86])

    assert old.hours == habits.hours
    assert old.trust == (FIRST_TRUST,) * 3
