"""Ways to plan polls, each with one parameter that sets how many polls there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil, inf, sqrt
from typing import Protocol

from msgspec.structs import replace

from hub.core.schedule.forecast import Forecast, entries_before_loss, seconds_until
from hub.core.schedule.poll_period import (
    DAY,
    PlanningContext,
    PollingRules,
    after_skipped,
    plan,
)
from hub.core.schedule.posting_profile import (
    Counts,
    Prior,
    hour_of,
    posting_rate,
    weekday_of,
    with_posts,
)
from hub.simulation.policy_run import Planning, history
from hub.simulation.traces import Rates, Trace, held_out_span
from storage.records import Polling, Posting, Validators

SHORTEST, LONGEST = 60.0, DAY
_WEEK = 7 * DAY
_VALIDATORS = Validators(url="https://feed.example/", etag='"1"')
_EVEN: Counts = (1.0,) * 12


class Policy(Protocol):
    """A way to plan polls. ``knob`` is above 0; the larger it is, the fewer polls."""

    @property
    def name(self) -> str: ...

    def begin(self, trace: Trace, knob: float) -> Planning:
        """Begin to plan the polls of one feed, with its posts before the test."""
        ...


@dataclass(frozen=True, slots=True)
class FixedInterval:
    """The same interval for every feed; the knob is the interval in seconds."""

    name: str = "fixed interval"

    def begin(self, trace: Trace, knob: float) -> Planning:
        return _Fixed(min(max(knob, SHORTEST), LONGEST))


@dataclass(frozen=True, slots=True)
class _Fixed:
    seconds: float

    def next_wait(self, now: float, posted: Sequence[float]) -> float:
        return self.seconds


@dataclass(frozen=True, slots=True)
class EntryFrequency:
    """Miniflux's scheduler: a week divided by the posts of the last week, times the
    knob.

    The week's posts are counted as Miniflux does: by the span of the document's dates.
    """

    name: str = "entry_frequency"

    def begin(self, trace: Trace, knob: float) -> Planning:
        known = list(history(trace, held_out_span(trace)))
        return _ByFrequency(known, trace.window or len(trace.posts), knob)


@dataclass(slots=True)
class _ByFrequency:
    known: list[float]
    window: int
    knob: float

    def next_wait(self, now: float, posted: Sequence[float]) -> float:
        self.known = [*self.known, *posted][-self.window :]
        week = [post for post in self.known if post > now - _WEEK]
        if len(week) < 2 or week[-1] == week[0]:
            return LONGEST
        weekly = ceil(_WEEK / ((week[-1] - week[0]) / (len(week) - 1)))
        return min(max(self.knob * _WEEK / weekly, SHORTEST), LONGEST)


@dataclass(frozen=True, slots=True)
class RootOfRate:
    """Polls every √(2θ/λ), λ from the decayed count alone; the knob is θ."""

    name: str = "√λ"

    def begin(self, trace: Trace, knob: float) -> Planning:
        return _ByRate(posting_before(trace), knob)


@dataclass(slots=True)
class _ByRate:
    posting: Posting
    price: float

    def next_wait(self, now: float, posted: Sequence[float]) -> float:
        at = datetime.fromtimestamp(now, UTC)
        if posted:
            self.posting = with_posts(self.posting, posted, at)
        wanted = sqrt(2 * self.price * DAY / posting_rate(self.posting, at))
        return min(max(wanted, SHORTEST), LONGEST)


@dataclass(frozen=True, slots=True)
class Planner:
    """The hub's own planner under its rules; the knob is the price.

    If ``answers_304`` is false, no server answers 304, whatever the traces say.
    """

    name: str
    rules: PollingRules
    prior: Prior
    answers_304: bool = True

    def begin(self, trace: Trace, knob: float) -> Planning:
        polling = Polling(
            code=200,
            validators=_VALIDATORS,
            answers_304=self.answers_304 and trace.answers_304,
            entry_count=trace.window,
            hints=trace.hints,
            posting=posting_before(trace),
        )
        planning_context = PlanningContext(price=knob, prior=self.prior)
        return PlannedFeed(polling, self.rules, planning_context, trace.max_age)


@dataclass(slots=True)
class PlannedFeed:
    """A feed under the hub's planner, whose context may change between polls."""

    polling: Polling
    rules: PollingRules
    planning_context: PlanningContext
    max_age: float

    def next_wait(self, now: float, posted: Sequence[float]) -> float:
        at = datetime.fromtimestamp(now, UTC)
        posting = self.polling.posting
        self.polling = replace(
            self.polling,
            last_success=at,
            fresh_until=at + timedelta(seconds=self.max_age) if self.max_age else None,
            posting=with_posts(posting, posted, at) if posted else posting,
        )
        planned = plan(
            self.polling, 1, self.rules, at, planning_context=self.planning_context
        )
        return planned.next_fetch.timestamp() - now


@dataclass(frozen=True, slots=True)
class RateOracle:
    """The planner's rule, with the known rates of the posts; the knob is the price."""

    name: str = "oracle of rates"

    def begin(self, trace: Trace, knob: float) -> Planning:
        """Begin to plan. Raises `ValueError` for a trace without rates."""
        if trace.rates is None:
            raise ValueError(f"{trace.feed} was not generated from known rates")
        return _Oracle(trace, trace.rates, knob)


@dataclass(frozen=True, slots=True)
class _Oracle:
    trace: Trace
    rates: Rates
    price: float

    def next_wait(self, now: float, posted: Sequence[float]) -> float:
        steady = self.rates.per_day / DAY
        shape = _KnownShape(self.rates)
        forecast = Forecast(start=now, steady=steady, excited=0.0, profile=shape)
        room = entries_before_loss(self.trace.window) if self.trace.window else inf
        wanted = seconds_until(forecast, self.price, LONGEST, room)
        wait = max(wanted, SHORTEST, self.trace.max_age)
        planned = datetime.fromtimestamp(now + wait, UTC)
        return after_skipped(self.trace.hints, planned).timestamp() - now


@dataclass(frozen=True, slots=True)
class _KnownShape:
    rates: Rates

    def at(self, moment: float) -> float:
        return self.rates.hours[hour_of(moment)] * self.rates.days[weekday_of(moment)]

    def steps(self) -> Counts:
        return _EVEN


def posting_before(trace: Trace) -> Posting:
    """Return the habits that a first document shows at the start of the test."""
    span = held_out_span(trace)
    since = datetime.fromtimestamp(trace.posts[0], UTC)
    at = datetime.fromtimestamp(span.start, UTC)
    return with_posts(Posting(since=since), history(trace, span), at)
