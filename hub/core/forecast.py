"""How many entries a feed is expected to post from now on, and when to ask for them.

The rate at a time t is a steady part that follows the feed's habits and a part that its
latest posts excite, as in a Hawkes process with an exponential kernel:

    λ(t) = (1 - β) λ P(h) P(d) M(m) + β Σ_k e^(-(t - t_k)/τ_b) / τ_b

λ is the rate of the decayed count of weeks (`hub.core.posting.posting_rate`), P and M
are the feed's habits (`hub.core.habits`).

A poll at t ends the waiting of everything posted before: ∫ λ(s)(t - s) ds entry-seconds
are expected. The next poll is due when that reaches a price θ. With one price for all
feeds, polls go where they end the most waiting (Olston and Widom, SIGMOD 2002; Sia, Cho
and Cho, TKDE 2007); at a constant rate the period is √(2θ/λ).

The rate is taken as constant over five minutes of an hour, and whole hours are summed
in closed form. Times are Unix seconds, rates are entries a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from math import exp, expm1, inf, sqrt
from operator import mul
from typing import Protocol

from hub.core.habits import STEP, Counts, Prior, Profile, read_habits, step_of
from hub.core.posting import BURST_MEMORY, burst_of, posting_rate
from storage.records import Posting

EXCITED = 0.2
"""β: the part of all posts that the model takes for answers to other posts."""

_HOUR = 3_600.0
_DAY = 86_400.0
_STEPS = 12
_TO_END_OF_HOUR = tuple(11.5 - step for step in range(12))
"""From the middle of each part of an hour, in such parts."""
_LEFT_OF_HOUR = -expm1(-_HOUR / BURST_MEMORY)
"""The part of an excitement that is over within an hour."""
_WAITED_IN_HOUR = BURST_MEMORY * (_HOUR - BURST_MEMORY * _LEFT_OF_HOUR)
"""∫ e^(-s/τ) (hour - s) ds over an hour."""
_LEFT_OF_STEP = -expm1(-STEP / BURST_MEMORY)


class Shape(Protocol):
    """What the steady rate is multiplied by, in the mean by 1."""

    def at(self, moment: float) -> float:
        """The factor of the hour that a time in Unix seconds lies in."""
        ...

    def steps(self) -> Counts:
        """The factors of the twelve parts of any hour."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """λ(t) from ``start``: ``steady`` times the profile, and ``excited``, decaying."""

    start: float
    steady: float
    excited: float
    profile: Shape

    @property
    def rate_now(self) -> float:
        """Entries a second expected at the start, whatever the minute."""
        return self.steady * self.profile.at(self.start) + self.excited

    def rate_at(self, moment: float) -> float:
        """Entries a second expected at a time not before the start."""
        return self.steady * self.profile.at(moment) * self.profile.steps()[
            step_of(moment)
        ] + self.excited * exp((self.start - moment) / BURST_MEMORY)


def foresee(posting: Posting, everybody: Prior, now: datetime) -> Forecast:
    """What the posts so far say, with the habits of all feeds behind the feed's own."""
    return Forecast(
        start=now.timestamp(),
        steady=(1 - EXCITED) * posting_rate(posting, now) / _DAY,
        excited=EXCITED * burst_of(posting, now) / BURST_MEMORY,
        profile=Profile(read_habits(posting.habits), everybody),
    )


def seconds_until(
    forecast: Forecast, price: float, longest: float, room: float = inf
) -> float:
    """When the expected waiting reaches a price in entry-seconds; ``longest`` at most.

    A feed of weight w is asked with the price θ/w. No later than so many entries are
    expected as there is ``room`` for.
    """
    return _walk(forecast, price, longest, room)[0]


def room_of(window: int) -> float:
    """How many entries may be expected of a feed that shows so many, and none be lost.

    n with n + 4√n = window: counts of a Poisson process stay below that. No window at
    all says nothing.
    """
    return (sqrt(4 + window) - 2) ** 2 if window else inf


def expected_entries(forecast: Forecast, seconds: float) -> float:
    """How many entries will have been posted after so many seconds: ∫ λ."""
    return _walk(forecast, inf, seconds, inf)[1]


def _walk(
    forecast: Forecast, price: float, longest: float, room: float
) -> tuple[float, float]:
    """Seconds until the price, the room or the end is reached, and entries by then."""
    steps, factor_at = forecast.profile.steps(), forecast.profile.at
    late = 0.0
    moment, excited = forecast.start, forecast.excited
    end = moment + longest
    entries = waited = 0.0
    while moment < end:
        steady = forecast.steady * factor_at(moment)
        into_hour = moment % _HOUR
        hour_ends = moment - into_hour + _HOUR
        if into_hour == 0.0 and hour_ends <= end:
            late = late or STEP * sum(map(mul, steps, _TO_END_OF_HOUR)) / len(steps)
            cost = (entries + steady * late) * _HOUR + excited * _WAITED_IN_HOUR
            more = steady * _HOUR + excited * BURST_MEMORY * _LEFT_OF_HOUR
            if waited + cost < price and entries + more < room:
                waited += cost
                entries += more
                excited *= 1 - _LEFT_OF_HOUR
                moment = hour_ends
                continue
        step = int(into_hour) // STEP
        step_ends = moment - moment % STEP + STEP
        while moment < end and step < _STEPS:
            span = min(step_ends, end) - moment
            rate = steady * steps[step] + excited
            cost = (entries + rate * span / 2) * span
            if waited + cost >= price or entries + rate * span >= room:
                left = price - waited
                root = sqrt(entries * entries + 2 * rate * left)
                last = 2 * left / (entries + root) if left else 0.0
                if entries + rate * last > room:
                    last = (room - entries) / rate
                return moment + last - forecast.start, entries + rate * last
            waited += cost
            entries += rate * span
            excited *= 1 - _LEFT_OF_STEP
            moment = step_ends
            step_ends += STEP
            step += 1
    return longest, entries
