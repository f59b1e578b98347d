"""Generated feeds of kinds that are told apart by how they post: for simulations.

What posts they have is drawn from a seed, and none of them is a process that the
planner assumes.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from hub.simulation.traces import Trace
from tests.support.feed_calendars import CALENDARS
from tests.support.feed_moods import MOODS
from tests.support.feed_span import DAY, DAYS, END, HOUR, START, Draw


def newsroom(draw: Random) -> Iterator[float]:
    """Stories in office hours, each followed by a burst of updates."""
    for day in range(DAYS):
        for _ in range(draw.randint(2, 6) if day % 7 < 5 else draw.randint(0, 1)):
            at = START + day * DAY + draw.uniform(7, 19) * HOUR
            yield at
            for _ in range(draw.randint(0, 12)):
                at += draw.expovariate(1 / 600)
                yield at


def podcast(draw: Random) -> Iterator[float]:
    """Once a week at one hour, give or take; sometimes skipped."""
    first = START + draw.uniform(0, 7) * DAY
    for week in range(DAYS // 7):
        if draw.random() > 0.1:
            yield first + week * 7 * DAY + draw.gauss(0, 900)


def dying(draw: Random) -> Iterator[float]:
    """A few posts a day, until nothing comes for most of the test."""
    at, last = START, START + draw.uniform(0.55, 0.75) * DAYS * DAY
    while (at := at + draw.expovariate(4 / DAY)) < last:
        yield at
    yield END - HOUR


def importer(draw: Random) -> Iterator[float]:
    """Fifty entries at once, every other day at any time."""
    at = START
    while (at := at + draw.expovariate(0.5 / DAY)) < END:
        yield from [at] * 50


def traveller(draw: Random) -> Iterator[float]:
    """A day's rhythm that moves by eight hours in the middle of the test."""
    start = draw.uniform(0, 24)
    for day in range(DAYS):
        moved = 8 if day > 0.8 * DAYS else 0
        for _ in range(draw.randint(1, 5)):
            hour = (start + moved + draw.uniform(0, 4)) % 24
            yield START + day * DAY + hour * HOUR


def waker(draw: Random) -> Iterator[float]:
    """Posts once a week, and twenty times as often from the middle of the test on."""
    at = START
    while at < END:
        a_day = 1 / 7 if at < START + 0.8 * DAYS * DAY else 20 / 7
        at += draw.expovariate(a_day / DAY)
        yield at


def timer(draw: Random) -> Iterator[float]:
    """Every few hours at the same minute, day and night."""
    period = draw.choice([2, 3, 4, 6, 12]) * HOUR
    at = START + draw.uniform(0, period)
    while at < END:
        yield at + draw.uniform(0, 60)
        at += period


def steady(draw: Random) -> Iterator[float]:
    """A few posts a day at any time."""
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
    """So many feeds of a kind, each of the same span."""
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
