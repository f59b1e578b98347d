"""Feeds of kinds that the planner assumes nothing of: it must not be worse for them."""

from __future__ import annotations

from statistics import mean

import pytest

from hub.simulation.comparison import at_budget, bold_rules, habits_of_all
from hub.simulation.policies import Planner, RootOfRate
from tests.support.feed_families import (
    FAMILIES,
    Draw,
    dying,
    family,
    importer,
    newsroom,
    podcast,
    timer,
    traveller,
    waker,
)

FIXED = 1_800.0
"""Seconds: the mean delay of a fixed interval at 24 polls a day, by arithmetic."""
NOISE = 1.15
"""Of a few feeds that post when they please, by chance."""


IMPORTS = 1.35
"""Of feeds that import fifty at once at any time: a fault told in docs/polling.md."""
SEEDS = (1, 2, 3, 4)
"""Of kinds with few posts, where one draw says little."""


def mean_delay(draw: Draw, seed: int = 1) -> float:
    feeds = family(draw, seed, 4)
    planner = Planner("planner", bold_rules(), habits_of_all(feeds))
    return at_budget(planner, feeds, 24).mean


KINDS = [draw for draw in FAMILIES if draw not in (waker, importer)]


@pytest.mark.parametrize("draw", KINDS, ids=lambda each: each.__name__)
def test_no_kind_of_feed_fares_worse_than_by_an_interval(draw: Draw) -> None:
    assert mean_delay(draw) <= NOISE * FIXED


def test_four_feeds_that_wake_fare_better_than_by_an_interval() -> None:
    """Five posts each before the test: what all of them did by chance is no habit."""
    assert mean(mean_delay(waker, seed) for seed in SEEDS) <= 0.9 * FIXED


def test_feeds_that_import_are_not_far_behind_an_interval() -> None:
    assert mean(mean_delay(importer, seed) for seed in SEEDS) <= IMPORTS * FIXED


@pytest.mark.parametrize(
    "draw", [newsroom, podcast, timer, traveller], ids=lambda each: each.__name__
)
def test_who_has_habits_fares_much_better(draw: Draw) -> None:
    assert mean_delay(draw) <= 0.8 * FIXED


def test_all_together_fare_better_than_by_their_rates() -> None:
    kinds = (newsroom, podcast, dying, importer, traveller, waker, timer)
    feeds = [feed for draw in kinds for feed in family(draw, 1, 2)]
    planner = Planner("planner", bold_rules(), habits_of_all(feeds))

    planned = at_budget(planner, feeds, 24).mean

    assert planned < at_budget(RootOfRate(), feeds, 24).mean
