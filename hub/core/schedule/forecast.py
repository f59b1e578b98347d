"""How many entries a feed is expected to post from now on, and when to ask for them.

The rate at a time t is a steady part that follows the feed's habits and a part that its
latest posts excite, as in a Hawkes process with an exponential kernel:

    λ(t) = (1 - β) λ P(h) P(d) M(m) + β Σ_k e^(-(t - t_k)/τ_b) / τ_b

λ is the rate of the decayed count of weeks, P and M are the feed's habits
(`hub.core.schedule.posting_profile`).

A poll at t ends the waiting of everything posted before: ∫ λ(s)(t - s) ds entry-seconds
are expected. The next poll is due when that reaches a price θ. With one price for all
feeds, polls go where they end the most waiting (Olston and Widom, SIGMOD 2002; Sia, Cho
and Cho, TKDE 2007); at a constant rate the period is √(2θ/λ).

The rate is taken as constant over five minutes of an hour, and hours in which nothing
falls due are summed in closed form. Times are Unix seconds, rates are entries a second.
"""

from __future__ import annotations

from datetime import datetime
from itertools import accumulate
from math import exp, inf, sqrt
from operator import mul
from typing import Protocol

import msgspec

from hub.core.schedule.posting_profile import (
    BURST_MEMORY,
    STEP,
    Counts,
    Prior,
    Profile,
    burst_of,
    posting_rate,
    read_habits,
    watched_days,
)
from storage.records import Posting

EXCITED = 0.2
"""β: the part of all posts that the model takes for answers to other posts."""

_HOUR = 3_600.0
_DAY = 86_400.0
_TO_END_OF_HOUR = tuple(STEP * STEP * (11.5 - step) for step in range(12))
"""For each part of an hour: the time from its middle to the hour's end, times its
length in seconds."""
_KEPT_BY_HOUR = exp(-_HOUR / BURST_MEMORY)
_KEPT_BY_STEP = exp(-STEP / BURST_MEMORY)
"""The share of an excitement that is left after one part of an hour."""


class Shape(Protocol):
    """The factors on the steady rate, with a mean of 1."""

    def at(self, moment: float) -> float:
        """The factor of the hour that a time in Unix seconds lies in."""
        ...

    def steps(self) -> Counts:
        """The factors of the twelve parts of any hour."""
        ...


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """λ(t) from ``start``: ``steady`` times the profile, and ``excited``, decaying."""

    start: float
    steady: float
    excited: float
    profile: Shape
    per_day: float = 0.0  # λ, entries a day, where it was estimated


def foresee(posting: Posting, everybody: Prior, now: datetime) -> Forecast:
    """The forecast from a feed's posts so far, backed by the habits of all feeds."""
    per_day = posting_rate(posting, now)
    return Forecast(
        start=now.timestamp(),
        steady=(1 - EXCITED) * per_day / _DAY,
        excited=EXCITED * burst_of(posting, now) / BURST_MEMORY,
        profile=Profile(
            own=read_habits(posting.habits),
            prior=everybody,
            days=watched_days(posting, now),
        ),
        per_day=per_day,
    )


def entries_before_loss(window: int) -> float:
    """How many entries may be expected between two polls so that none is lost.

    ``window``: how many entries the feed shows. The result is n with n + 4√n = window,
    since counts of a Poisson process stay below that; without limit if the window is 0.
    """
    return (sqrt(4 + window) - 2) ** 2 if window else inf


def seconds_until(
    forecast: Forecast, price: float, longest: float, room: float = inf
) -> float:
    """Seconds until the expected waiting reaches a price, in entry-seconds.

    They are ``longest`` at most. A feed of weight w is polled at the price θ/w, and
    before more entries are expected than ``room``.
    """
    moment, excited = forecast.start, forecast.excited
    last_hour = moment + longest - _HOUR
    steps, factor_at = forecast.profile.steps(), forecast.profile.at
    so_far = list(accumulate(steps))
    late = list(accumulate(map(mul, steps, _TO_END_OF_HOUR)))
    entries = waited = 0.0
    while True:
        steady = forecast.steady * factor_at(moment)
        into_hour = moment % _HOUR
        left, step = _HOUR - into_hour, int(into_hour) // STEP
        if moment - into_hour > last_hour:
            break  # the hour is not wholly within the span
        kept = exp(-left / BURST_MEMORY) if into_hour else _KEPT_BY_HOUR
        faded = excited * BURST_MEMORY * (1 - kept)
        first = STEP * (step + 1) - into_hour
        more = STEP * (so_far[-1] - so_far[step]) + steps[step] * first
        late_by = late[-1] - late[step] + steps[step] * first * (left - first / 2)
        cost = steady * late_by + BURST_MEMORY * (excited * left - faded)
        cost += entries * left
        more = steady * more + faded
        if waited + cost >= price or entries + more >= room:
            break
        waited += cost
        entries += more
        excited *= kept
        moment += left
    rates = [steady * factor for factor in steps[step:]]
    within = _seconds_within(rates, excited, moment, price - waited, entries, room)
    return min(moment - forecast.start + within, longest)


def _seconds_within(
    rates: list[float],
    excited: float,
    moment: float,
    price: float,
    entries: float,
    room: float,
) -> float:
    """Like `seconds_until`, from a moment to the end of its hour, step by step.

    ``rates`` are the steady rates of the steps, ``price`` is what is left of the price,
    ``entries`` are those that wait already.
    """
    seconds = 0.0
    span = STEP - moment % STEP
    for steady in rates:
        rate = steady + excited
        more = rate * span
        cost = (entries + more / 2) * span
        if cost >= price or entries + more >= room:
            return seconds + _until(entries, rate, price, room)
        price -= cost
        entries += more
        excited *= _KEPT_BY_STEP
        seconds += span
        span = STEP
    return seconds


def _until(entries: float, rate: float, price: float, room: float) -> float:
    """Seconds until the rest of a price, or of the room, is used up at one rate."""
    root = sqrt(entries * entries + 2 * rate * price)
    seconds = 2 * price / (entries + root) if price else 0.0
    return min(seconds, (room - entries) / rate) if rate else seconds
