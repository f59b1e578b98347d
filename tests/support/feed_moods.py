"""Generated feeds that keep to no clock, or change: for simulations."""

from __future__ import annotations

from collections.abc import Iterator
from math import pi, sin
from random import Random

from tests.support.feed_span import DAY, DAYS, END, HOUR, LATE_DAY, START, Draw


def revived(draw: Random) -> Iterator[float]:
    """A few posts a day, none for four weeks, and a few a day again."""
    at, silent = START, (0.25 * DAYS * DAY, 0.75 * DAYS * DAY)
    while (at := at + draw.expovariate(3 / DAY)) < END:
        if not silent[0] < at - START < silent[1]:
            yield at


def calmer(draw: Random) -> Iterator[float]:
    """Ten posts a day, and one from the middle of the test on."""
    at = START
    while at < END:
        a_day = 10 if at < START + LATE_DAY * DAY else 1
        at += draw.expovariate(a_day / DAY)
        yield at


def seasonal(draw: Random) -> Iterator[float]:
    """From next to nothing to fifteen posts a day, and back within four weeks."""
    at, phase = START, draw.uniform(0, 2 * pi)
    while (at := at + draw.expovariate(15.2 / DAY)) < END:
        season = sin(2 * pi * (at - START) / (28 * DAY) + phase)
        if draw.random() < (1 + 0.9 * season) / 1.9:
            yield at


def heavy_tail(draw: Random) -> Iterator[float]:
    """Gaps from ten minutes to weeks, without a mean."""
    at = START
    while at < END:
        at += 600 * draw.paretovariate(0.7)
        yield at


def dripping(draw: Random) -> Iterator[float]:
    """Up to sixty, two minutes apart, every other day at any time."""
    at = START
    while (at := at + draw.expovariate(0.5 / DAY)) < END:
        one = at
        for _ in range(draw.randint(5, 60)):
            one += draw.expovariate(1 / 120)
            yield one


def odd_period(draw: Random) -> Iterator[float]:
    """Every so many hours, which no day is a multiple of."""
    period = draw.uniform(1.5, 30) * HOUR
    at = START + draw.uniform(0, period)
    while at < END:
        yield at + draw.uniform(0, 120)
        at += period


MOODS: tuple[Draw, ...] = (
    revived,
    calmer,
    seasonal,
    heavy_tail,
    dripping,
    odd_period,
)
