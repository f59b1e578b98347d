"""Generated feeds that differ in how they post, for simulations.

Some post by a clock or a calendar, some keep to no clock, some change. Their posts are
drawn from a seed, and none of them is a process that the planner assumes. The planner
may learn from 60 % of their weeks; the rest is the test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import pi, sin
from random import Random

from hub.simulation.traces import Trace

HOUR, DAY = 3_600.0, 86_400.0
START = 1_767_571_200.0  # Monday, 5 January 2026
DAYS = 56
END = START + DAYS * DAY
LATE_DAY = 0.8 * DAYS
"""The middle of the test, when feeds that change do so."""

Draw = Callable[[Random], Iterator[float]]


ZONES = (-8, -5, 0, 1, 9)


def cron(draw: Random) -> Iterator[float]:
    """Post once a day, at one minute."""
    at = START + draw.uniform(0, 24) * HOUR
    for day in range(DAYS):
        yield at + day * DAY + draw.uniform(0, 60)


def newsletter(draw: Random) -> Iterator[float]:
    """Post once a week, at one minute."""
    at = START + draw.uniform(0, 7) * DAY
    for week in range(DAYS // 7):
        yield at + week * 7 * DAY + draw.uniform(0, 120)


def fortnightly(draw: Random) -> Iterator[float]:
    """Post every second week at about one hour: four times in all."""
    at = START + draw.uniform(0, 14) * DAY
    for week in range(0, DAYS // 7, 2):
        yield at + week * 7 * DAY + draw.gauss(0, 1_800)


def office(draw: Random) -> Iterator[float]:
    """Post in bursts in the office hours of a zone whose clocks change in the test."""
    zone = draw.choice(ZONES)
    for day in range(DAYS):
        if day % 7 < 5:
            change = zone + (1 if day > LATE_DAY else 0)
            for _ in range(draw.randint(1, 4)):
                hour = (draw.uniform(9, 17) - change) % 24
                at = START + day * DAY + hour * HOUR
                for _ in range(draw.randint(1, 5)):
                    yield at
                    at += draw.expovariate(1 / 900)


def summer(draw: Random) -> Iterator[float]:
    """Post by a timer up to four times a day; the zone's clocks change in the test."""
    hours = draw.sample(range(24), draw.randint(1, 4))
    minute = draw.uniform(0, 60) * 60
    for day in range(DAYS):
        change = HOUR if day > LATE_DAY else 0
        for hour in hours:
            late = minute - change + draw.uniform(0, 60)
            yield START + day * DAY + hour * HOUR + late


def midnight(draw: Random) -> Iterator[float]:
    """Import up to sixty at once, at midnight of some zone."""
    zone = draw.choice(ZONES)
    for day in range(DAYS):
        at = START + day * DAY + (-zone % 24) * HOUR + draw.uniform(0, 300)
        yield from [at] * draw.randint(5, 60)


def batches(draw: Random) -> Iterator[float]:
    """Import up to forty at once every few hours, and sometimes none."""
    period = draw.choice([3, 6, 8, 12, 24]) * HOUR
    at = START + draw.uniform(0, period)
    while at < END:
        yield from [at + draw.uniform(0, 120)] * draw.randint(0, 40)
        at += period


def hourly(draw: Random) -> Iterator[float]:
    """Post on the hour, two times of three."""
    for hour in range(DAYS * 24):
        if draw.random() < 0.7:
            yield START + hour * HOUR + draw.uniform(0, 20)


def either(draw: Random) -> Iterator[float]:
    """Post on working days, at one of two times."""
    one, other = draw.uniform(0, 24), draw.uniform(0, 24)
    for day in range(DAYS):
        if day % 7 < 5:
            hour = one if draw.random() < 0.5 else other
            yield START + day * DAY + hour * HOUR + draw.gauss(0, 600)


CALENDARS: tuple[Draw, ...] = (
    cron,
    newsletter,
    fortnightly,
    office,
    summer,
    midnight,
    batches,
    hourly,
    either,
)


def revived(draw: Random) -> Iterator[float]:
    """Post a few times a day, not for four weeks, and again a few times a day."""
    at, silent = START, (0.25 * DAYS * DAY, 0.75 * DAYS * DAY)
    while (at := at + draw.expovariate(3 / DAY)) < END:
        if not silent[0] < at - START < silent[1]:
            yield at


def calmer(draw: Random) -> Iterator[float]:
    """Post ten times a day, and once a day from the middle of the test on."""
    at = START
    while at < END:
        a_day = 10 if at < START + LATE_DAY * DAY else 1
        at += draw.expovariate(a_day / DAY)
        yield at


def seasonal(draw: Random) -> Iterator[float]:
    """Post from next to nothing to fifteen times a day, and back within four weeks."""
    at, phase = START, draw.uniform(0, 2 * pi)
    while (at := at + draw.expovariate(15.2 / DAY)) < END:
        season = sin(2 * pi * (at - START) / (28 * DAY) + phase)
        if draw.random() < (1 + 0.9 * season) / 1.9:
            yield at


def heavy_tail(draw: Random) -> Iterator[float]:
    """Post with gaps from ten minutes to weeks, which have no mean."""
    at = START
    while at < END:
        at += 600 * draw.paretovariate(0.7)
        yield at


def dripping(draw: Random) -> Iterator[float]:
    """Post up to sixty, two minutes apart, every other day at any time."""
    at = START
    while (at := at + draw.expovariate(0.5 / DAY)) < END:
        one = at
        for _ in range(draw.randint(5, 60)):
            one += draw.expovariate(1 / 120)
            yield one


def odd_period(draw: Random) -> Iterator[float]:
    """Post every so many hours, with a period that does not divide a day."""
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


def newsroom(draw: Random) -> Iterator[float]:
    """Post stories in office hours, each followed by a burst of updates."""
    for day in range(DAYS):
        for _ in range(draw.randint(2, 6) if day % 7 < 5 else draw.randint(0, 1)):
            at = START + day * DAY + draw.uniform(7, 19) * HOUR
            yield at
            for _ in range(draw.randint(0, 12)):
                at += draw.expovariate(1 / 600)
                yield at


def podcast(draw: Random) -> Iterator[float]:
    """Post once a week at about one hour, and sometimes skip a week."""
    first = START + draw.uniform(0, 7) * DAY
    for week in range(DAYS // 7):
        if draw.random() > 0.1:
            yield first + week * 7 * DAY + draw.gauss(0, 900)


def dying(draw: Random) -> Iterator[float]:
    """Post a few times a day, and then not at all for most of the test."""
    at, last = START, START + draw.uniform(0.55, 0.75) * DAYS * DAY
    while (at := at + draw.expovariate(4 / DAY)) < last:
        yield at
    yield END - HOUR


def importer(draw: Random) -> Iterator[float]:
    """Import fifty at once, every other day at any time."""
    at = START
    while (at := at + draw.expovariate(0.5 / DAY)) < END:
        yield from [at] * 50


def traveller(draw: Random) -> Iterator[float]:
    """Post by a daily rhythm that moves by eight hours in the middle of the test."""
    start = draw.uniform(0, 24)
    for day in range(DAYS):
        moved = 8 if day > 0.8 * DAYS else 0
        for _ in range(draw.randint(1, 5)):
            hour = (start + moved + draw.uniform(0, 4)) % 24
            yield START + day * DAY + hour * HOUR


def waker(draw: Random) -> Iterator[float]:
    """Post once a week, and twenty times as often from the middle of the test on."""
    at = START
    while at < END:
        a_day = 1 / 7 if at < START + 0.8 * DAYS * DAY else 20 / 7
        at += draw.expovariate(a_day / DAY)
        yield at


def timer(draw: Random) -> Iterator[float]:
    """Post every few hours at the same minute, day and night."""
    period = draw.choice([2, 3, 4, 6, 12]) * HOUR
    at = START + draw.uniform(0, period)
    while at < END:
        yield at + draw.uniform(0, 60)
        at += period


def steady(draw: Random) -> Iterator[float]:
    """Post a few times a day at any time."""
    at, a_day = START, draw.uniform(0.5, 8)
    while (at := at + draw.expovariate(a_day / DAY)) < END:
        yield at


FAMILIES: tuple[Draw, ...] = (
    newsroom,
    podcast,
    dying,
    importer,
    traveller,
    waker,
    timer,
    steady,
    *CALENDARS,
    *MOODS,
)


def family(draw_posts: Draw, seed: int, feeds: int) -> tuple[Trace, ...]:
    """Make feeds of a kind, all of the same span."""
    draw = Random(seed)
    return tuple(
        Trace(
            feed=f"{draw_posts.__name__}-{number}",
            posts=tuple(sorted([START, *_within(draw_posts(draw)), END])),
            window=100,
        )
        for number in range(feeds)
    )


def _within(posts: Iterator[float]) -> list[float]:
    return [round(post) for post in posts if START < post < END]
