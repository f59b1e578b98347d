"""Generated traffic: feeds whose rates are known, so that an oracle can be asked."""

from __future__ import annotations

from math import cos, exp, log, pi
from random import Random

from hub.core.schedule.posting_profile import Counts, hour_of, weekday_of
from hub.simulation.traces import Rates, Trace

FIRST_DAY = 1_767_571_200.0  # Monday, 5 January 2026
SLOWEST, FASTEST = 0.1, 30.0  # entries a day
WINDOWS = (10, 15, 20, 25, 50)
MAX_AGES = (0,) * 8 + (300, 900)  # seconds
SKIPPING = 0.1  # of all feeds name skipHours


def generate(seed: int, feeds: int, days: int) -> tuple[Trace, ...]:
    """So many feeds over so many days: Poisson processes with habits.

    Some of them declare a max-age or skipHours.
    """
    draw = Random(seed)  # noqa: S311 - hides nothing
    return tuple(_feed(draw, number, days) for number in range(feeds))


def _feed(draw: Random, number: int, days: int) -> Trace:
    rates = Rates(
        per_day=round(exp(draw.uniform(log(SLOWEST), log(FASTEST))), 4),
        hours=_bump(draw.uniform(0, 24), draw.choice((0.5, 2.0, 6.0))),
        days=_week(draw.choice((1.0, 0.5, 0.1))),
    )
    end = FIRST_DAY + days * 86_400
    posts = [FIRST_DAY + draw.uniform(0, 3_600), *_posts(draw, rates, end)]
    return Trace(
        feed=f"generated-{number:03}",
        posts=tuple(sorted(map(round, [*posts, end - draw.uniform(0, 3_600)]))),
        window=draw.choice(WINDOWS),
        max_age=draw.choice(MAX_AGES),
        skip_hours=(2, 3) if draw.random() < SKIPPING else (),
        rates=rates,
    )


def _posts(draw: Random, rates: Rates, end: float) -> list[float]:
    """By thinning: drawn at the highest rate, kept by the share of the rate then."""
    most = rates.per_day / 86_400 * max(rates.hours) * max(rates.days)
    posts, moment = [], FIRST_DAY
    while (moment := moment + draw.expovariate(most)) < end:
        by_hour, by_day = (
            rates.hours[hour_of(moment)],
            rates.days[weekday_of(moment)],
        )
        if draw.random() * most < rates.per_day / 86_400 * by_hour * by_day:
            posts.append(moment)
    return posts


def _bump(center: float, concentration: float) -> Counts:
    """A day with one busy time: the von Mises density at each hour."""
    weights = [
        exp(concentration * cos(2 * pi * (hour + 0.5 - center) / 24))
        for hour in range(24)
    ]
    return _of_mean_one(weights)


def _week(weekend: float) -> Counts:
    """Saturday and Sunday have so much of a working day."""
    return _of_mean_one([1.0] * 5 + [weekend] * 2)


def _of_mean_one(weights: list[float]) -> Counts:
    mean = sum(weights) / len(weights)
    return tuple(round(weight / mean, 6) for weight in weights)
