"""Feeds of kinds that the planner assumes nothing of: it must not be worse for them."""

from __future__ import annotations

from functools import cache
from statistics import mean

import pytest

from hub.simulation.comparison import at_budget, bold_rules, habits_of_all
from hub.simulation.policies import Planner, RootOfRate
from tests.support.feed_families import (
    FAMILIES,
    Draw,
    batches,
    calmer,
    cron,
    dying,
    either,
    family,
    fortnightly,
    hourly,
    importer,
    midnight,
    newsletter,
    newsroom,
    odd_period,
    office,
    podcast,
    revived,
    seasonal,
    steady,
    summer,
    timer,
    traveller,
    waker,
)

FIXED = 1_800.0
"""Seconds: the mean delay of a fixed interval at 24 polls a day, by arithmetic."""
NOISE = 1.15
"""Of a few feeds that post when they please, by chance."""
IMPORTS = 1.2
"""Of feeds that import fifty at once at any time: a dozen of them look like habits."""
SEEDS = (1, 2, 3, 4)
"""Of kinds with few posts, where one draw says little."""


@cache
def mean_delay(draw: Draw, seed: int = 1) -> float:
    feeds = family(draw, seed, 4)
    planner = Planner("planner", bold_rules(), habits_of_all(feeds))
    return at_budget(planner, feeds, 24).mean


HABITUAL = (newsroom, podcast, timer, traveller, either, fortnightly, hourly)
PUNCTUAL = (batches, cron, midnight, newsletter, office, summer)
IRREGULAR = (calmer, odd_period, revived, seasonal, steady, waker)
OTHERS = [
    draw
    for draw in FAMILIES
    if draw not in (importer, *HABITUAL, *PUNCTUAL, *IRREGULAR)
]


@pytest.mark.parametrize("draw", OTHERS, ids=lambda each: each.__name__)
def test_no_kind_of_feed_fares_worse_than_by_an_interval(draw: Draw) -> None:
    assert mean_delay(draw) <= NOISE * FIXED


def test_four_feeds_that_wake_fare_better_than_by_an_interval() -> None:
    """Five posts each before the test: what all of them did by chance is no habit."""
    assert mean(mean_delay(waker, seed) for seed in SEEDS) <= 0.9 * FIXED


def test_feeds_that_import_are_not_far_behind_an_interval() -> None:
    assert mean(mean_delay(importer, seed) for seed in SEEDS) <= IMPORTS * FIXED


@pytest.mark.parametrize("draw", HABITUAL, ids=lambda each: each.__name__)
def test_who_has_habits_fares_much_better(draw: Draw) -> None:
    assert mean_delay(draw) <= 0.8 * FIXED


@pytest.mark.parametrize("draw", PUNCTUAL, ids=lambda each: each.__name__)
def test_who_keeps_to_a_clock_is_found_within_half_the_time(draw: Draw) -> None:
    assert mean_delay(draw) <= 0.5 * FIXED


@pytest.mark.parametrize("draw", IRREGULAR, ids=lambda each: each.__name__)
def test_who_has_none_fares_nearly_as_well_as_by_its_rate(draw: Draw) -> None:
    by_rate = mean(
        at_budget(RootOfRate(), family(draw, seed, 4), 24).mean for seed in SEEDS[:2]
    )

    planned = mean(mean_delay(draw, seed) for seed in SEEDS[:2])
    assert planned <= NOISE * min(by_rate, FIXED)


def test_all_together_fare_better_than_by_their_rates() -> None:
    kinds = (newsroom, podcast, dying, importer, traveller, waker, timer)
    feeds = [feed for draw in kinds for feed in family(draw, 1, 2)]
    planner = Planner("planner", bold_rules(), habits_of_all(feeds))

    planned = at_budget(planner, feeds, 24).mean

    assert planned < at_budget(RootOfRate(), feeds, 24).mean
