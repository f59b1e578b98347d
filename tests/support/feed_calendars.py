"""Generated feeds that post by a clock or a calendar: for simulations."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tests.support.feed_span import DAY, DAYS, END, HOUR, LATE_DAY, START, Draw

ZONES = (-8, -5, 0, 1, 9)


def cron(draw: Random) -> Iterator[float]:
    """Once a day at one minute."""
    at = START + draw.uniform(0, 24) * HOUR
    for day in range(DAYS):
        yield at + day * DAY + draw.uniform(0, 60)


def newsletter(draw: Random) -> Iterator[float]:
    """Once a week at one minute."""
    at = START + draw.uniform(0, 7) * DAY
    for week in range(DAYS // 7):
        yield at + week * 7 * DAY + draw.uniform(0, 120)


def fortnightly(draw: Random) -> Iterator[float]:
    """Every second week at one hour, give or take: four times in all."""
    at = START + draw.uniform(0, 14) * DAY
    for week in range(0, DAYS // 7, 2):
        yield at + week * 7 * DAY + draw.gauss(0, 1_800)


def office(draw: Random) -> Iterator[float]:
    """Bursts in the office hours of a zone whose clocks change in the test."""
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
    """A timer, one to four times a day, of a zone whose clocks change in the test."""
    hours = draw.sample(range(24), draw.randint(1, 4))
    minute = draw.uniform(0, 60) * 60
    for day in range(DAYS):
        change = HOUR if day > LATE_DAY else 0
        for hour in hours:
            late = minute - change + draw.uniform(0, 60)
            yield START + day * DAY + hour * HOUR + late


def midnight(draw: Random) -> Iterator[float]:
    """Up to sixty imported at once, at midnight of some zone."""
    zone = draw.choice(ZONES)
    for day in range(DAYS):
        at = START + day * DAY + (-zone % 24) * HOUR + draw.uniform(0, 300)
        yield from [at] * draw.randint(5, 60)


def batches(draw: Random) -> Iterator[float]:
    """Up to forty imported at once, every few hours, and sometimes none."""
    period = draw.choice([3, 6, 8, 12, 24]) * HOUR
    at = START + draw.uniform(0, period)
    while at < END:
        yield from [at + draw.uniform(0, 120)] * draw.randint(0, 40)
        at += period


def hourly(draw: Random) -> Iterator[float]:
    """On the hour, two times of three."""
    for hour in range(DAYS * 24):
        if draw.random() < 0.7:
            yield START + hour * HOUR + draw.uniform(0, 20)


def either(draw: Random) -> Iterator[float]:
    """On working days at one of two times."""
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
