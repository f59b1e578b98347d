"""Feeds of kinds that the planner assumes nothing of: it must not be worse for them."""

from __future__ import annotations

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


def mean_delay(draw: Draw) -> float:
    feeds = family(draw, 1, 4)
    planner = Planner("planner", bold_rules(), habits_of_all(feeds))
    return at_budget(planner, feeds, 24).mean


KINDS = [draw for draw in FAMILIES if draw is not waker]
"""What a feed that wakes costs is in docs/polling.md: it is not mended yet."""


@pytest.mark.parametrize("draw", KINDS, ids=lambda each: each.__name__)
def test_no_kind_of_feed_fares_worse_than_by_an_interval(draw: Draw) -> None:
    assert mean_delay(draw) <= NOISE * FIXED


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
