"""Posting times of feeds, recorded or generated, which a simulation replays.

The rates of generated posts are known, so that policies can be compared with an oracle.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from math import cos, exp, log, pi
from random import Random
from typing import Annotated

import msgspec

from hub.core.schedule.posting_profile import Counts, hour_of, weekday_of
from protocols.model import Hints
from protocols.protocol_errors import InvalidValue

TRAINED = 0.6
"""The share of a feed's span that planners may learn from before they are tested."""
LEAST_POSTS = 3
MOST_BYTES = 64 * 2**20
"""The largest file of traces."""
LONGEST_SPAN = 30 * 365 * 86_400.0
"""Seconds from a feed's first post to its last: simulating centuries would take too
long."""
_MOST_WINDOW = 1_000_000
_LONGEST_MAX_AGE = 365 * 86_400.0

_Time = Annotated[float, msgspec.Meta(ge=0, le=4_102_444_800)]  # to the year 2100
_Hour = Annotated[int, msgspec.Meta(ge=0, le=23)]
_Factor = Annotated[float, msgspec.Meta(ge=0, le=1e6)]


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """What posts were generated from: entries a day, times factors of hour and weekday.

    The factors have a mean of 1; hours and days are of UTC.
    """

    per_day: Annotated[float, msgspec.Meta(gt=0, le=1e6)]
    hours: Annotated[tuple[_Factor, ...], msgspec.Meta(min_length=24, max_length=24)]
    days: Annotated[tuple[_Factor, ...], msgspec.Meta(min_length=7, max_length=7)]


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """One feed: its posts in Unix seconds, and what its server and document say.

    ``window`` is how many entries its document shows; 0: unknown. ``max_age`` is in
    seconds; ``skip_hours`` are of UTC. ``answers_304``: whether its server honours
    validators. The test begins after the share ``trained`` of its span.
    """

    feed: str
    posts: tuple[_Time, ...]
    window: Annotated[int, msgspec.Meta(ge=0, le=_MOST_WINDOW)] = 0
    max_age: Annotated[float, msgspec.Meta(ge=0, le=_LONGEST_MAX_AGE)] = 0.0
    answers_304: bool = True
    skip_hours: Annotated[tuple[_Hour, ...], msgspec.Meta(max_length=23)] = ()
    rates: Rates | None = None
    trained: Annotated[float, msgspec.Meta(gt=0, lt=1)] = TRAINED

    @property
    def hints(self) -> Hints:
        return Hints(skip_hours=self.skip_hours)


class _TraceFile(msgspec.Struct):
    feeds: list[Trace]


@dataclass(frozen=True, slots=True)
class Span:
    """The test span of a feed, in Unix seconds."""

    start: float
    end: float

    @property
    def days(self) -> float:
        return (self.end - self.start) / 86_400


def held_out_span(trace: Trace) -> Span:
    """Return the part of a feed's span that is not for learning: usually the last 40
    %."""
    first, last = trace.posts[0], trace.posts[-1]
    return Span(first + trace.trained * (last - first), last)


def read_traces(document: bytes) -> tuple[Trace, ...]:
    """Read traces from JSON: ``feeds``, each with its name ``feed`` and its ``posts``.

    Feeds with fewer than three different times are left out. Raises `InvalidValue`,
    which names the feed and its field by their path in the document.
    """
    if len(document) > MOST_BYTES:
        raise InvalidValue("traces", f"at most {MOST_BYTES:,} bytes")
    try:
        read = msgspec.json.decode(document, type=_TraceFile)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        expected = '{"feeds": [{"feed": …, "posts": [Unix seconds]}]}'
        raise InvalidValue("traces", f"JSON like {expected} ({error})") from error
    ordered = [
        msgspec.structs.replace(trace, posts=tuple(sorted(trace.posts)))
        for trace in read.feeds
    ]
    traces = tuple(each for each in ordered if len(set(each.posts)) >= LEAST_POSTS)
    if not traces:
        raise InvalidValue(
            "posts", f"a feed with {LEAST_POSTS} different times or more"
        )
    for trace in traces:
        if trace.posts[-1] - trace.posts[0] > LONGEST_SPAN:
            raise InvalidValue(
                f"posts of {trace.feed}", "30 years at most between them"
            )
    return traces


def bundled_traces() -> tuple[Trace, ...]:
    """Return the generated traces that come with the hub."""
    return read_traces(files(__package__).joinpath("traces.json").read_bytes())


FIRST_DAY = 1_767_571_200.0  # Monday, 5 January 2026
SLOWEST, FASTEST = 0.1, 30.0  # entries a day
WINDOWS = (10, 15, 20, 25, 50)
MAX_AGES = (0,) * 8 + (300, 900)  # seconds
SKIPPING = 0.1  # share of feeds that name skipHours


def generate(seed: int, feeds: int, days: int) -> tuple[Trace, ...]:
    """Generate the posts of feeds over a number of days, the same for the same seed.

    They are Poisson processes with daily and weekly habits. Some feeds declare a
    max-age or skipHours.
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
    """Draw posts by thinning: at the highest rate, each kept by the rate at its
    time."""
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
    """Return a day's weights with one busy time: a von Mises density by the hour."""
    weights = [
        exp(concentration * cos(2 * pi * (hour + 0.5 - center) / 24))
        for hour in range(24)
    ]
    return _of_mean_one(weights)


def _week(weekend: float) -> Counts:
    """Return weights in which a weekend day has ``weekend`` times the posts of a
    working day."""
    return _of_mean_one([1.0] * 5 + [weekend] * 2)


def _of_mean_one(weights: list[float]) -> Counts:
    mean = sum(weights) / len(weights)
    return tuple(round(weight / mean, 6) for weight in weights)
