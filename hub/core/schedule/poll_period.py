"""When a feed is polled next, with every term of the computation named.

A feed is polled when the entries it is expected to have posted will have waited,
together and weighed by its subscribers, for the price θ of a poll:

    w ∫ λ(s)(t - s) ds = θ        from the last poll to t

`hub.core.schedule.forecast` says what λ is; were it constant, the period would be
√(2θ/(wλ)). With one price for all feeds, polls go where they shorten waiting the most.
Floors keep the hub polite, and are lower at hours at which the feed is expected to
post. What a server says (Retry-After, Cache-Control, Expires) is never undercut. What a
document says (ttl, sy:updatePeriod, skipHours, skipDays) is a wish that the feed's own
posting may contradict. A feed in error is left alone for as long as its server's answer
asks.

A new feed settles in: it is polled 1, 5 and 15 minutes after its first good answer,
whatever its period. That shows whether its server answers 304, and a first
entry comes soon.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import inf, log2, sqrt

import msgspec

from hub.core.schedule.forecast import (
    Forecast,
    entries_before_loss,
    foresee,
    seconds_until,
)
from hub.core.schedule.posting_profile import Prior, burst_of, prior_of
from protocols.model import Hints
from storage.records import Polling, PollReason

EVEN = prior_of(())
"""The habits of all feeds while none are known."""


class PlanningContext(msgspec.Struct, frozen=True, kw_only=True):
    """``price`` is θ, the expected entry-seconds of waiting that a poll is worth.

    It is the same for all feeds at a time; the hub steers it to its budget of polls.
    """

    price: float = 75.0  # a feed with one entry a day is polled hourly
    prior: Prior = EVEN


HOUR = 3_600.0
DAY = 86_400.0
JITTER = 0.05
"""The part of a period that jitter may add or take."""
LONGEST_JITTER = 150.0
"""The most seconds of jitter, so that a poll planned for the minutes after a post hits
them."""
AWAKE = 0.2
"""A feed is awake while its habits promise so much of its mean rate."""
SKIP_SPREAD = 900.0
"""Feeds whose skipHours are over are polled within so many seconds."""
BACKUP_FACTOR = 12
"""A feed that is pushed is polled so many times as rarely, in case the hub fails."""


LARGE_BODY, SIZEABLE_BODY = 1_048_576, 262_144
"""Bytes of a document that a server without 304 sends whole with every poll."""
RESOURCE_FLOOR = 300.0
"""The least seconds between two polls of a topic that is not a feed."""

SETTLING = (60.0, 300.0, 900.0)
"""Seconds after its first good answer at which a new feed is polled, at the latest."""
SETTLING_BUSY = 60.0
"""Seconds between two polls of a new feed that is posting right now."""
JUST_POSTED = 0.9
"""The burst of a feed whose last post is at most twelve minutes old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PollingRules:
    """What operators may set. Times are seconds; rates are entries a day.

    ``min_period`` and ``max_period`` are absolute: a floor above ``max_period`` gives
    way to it, so setting both to 1 polls an intranet every second.
    """

    min_period: float = 60.0
    max_period: float = DAY
    promised: float = HOUR  # the longest period where the server answers 304
    promised_without_304: float = 3 * HOUR
    promised_awake: float = 900.0  # while ``earning_rate`` is expected
    default_floor: float = HOUR  # the least period of feeds that are asleep
    earned_floor: float = 900.0  # the least period of all other feeds
    expected_floor: float = 300.0  # of feeds that are expected to post soon
    expected_rate: float = 12.0  # the rate that earns it: half an entry within the hour
    earning_rate: float = 24.0  # the expected rate that counts as awake: one an hour
    fast_rate: float = 144.0  # earns ``min_period``, if the server allows it
    patience: float = 18.75  # the first price: one entry a day is polled half-hourly
    longest_freshness: float = DAY  # of Cache-Control and Expires
    longest_retry_after: float = 7 * DAY
    gone_sightings: int = 2  # consecutive 410 that end polling
    dead_sightings: int = 5  # consecutive 404 that end it, over so many seconds
    dead_after: float = 7 * DAY
    tells_unlisted: bool = True  # whether subscribers are notified of unlisted entries
    entries_of_day: int = 20_000  # a feed's new entries that are sent in a day
    bytes_of_day: int = 32 * 1024 * 1024  # of a feed's new and changed entries in a day
    backup_period: float = DAY  # the least period of feeds that are pushed
    push_url: str = ""  # where other hubs push to this hub; "": they do not


def rules_of(
    rules: PollingRules, own_period: float, *, is_failing: bool = False
) -> PollingRules:
    """The rules for a feed whose period was set; ``own_period`` 0: it was not.

    Whatever its server asks for still counts, and so do its failures.
    """
    if not own_period:
        return rules
    period = max(own_period, rules.min_period)
    longest = max(period, rules.max_period) if is_failing else period
    return replace(rules, min_period=period, max_period=longest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One number that the period or the next fetch is made of, and why."""

    name: str
    value: float
    unit: str
    note: str


_Noted = tuple[str, float, str, str]
"""The fields of a `Term`, which is only made when somebody asks for it."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The ``period`` in seconds, the next fetch and its reason, every term that led to
    these, in order, and the forecast that they are made of."""

    period: float
    next_fetch: datetime
    reason: PollReason
    noted: tuple[_Noted, ...]
    forecast: Forecast

    @property
    def terms(self) -> tuple[Term, ...]:
        return tuple(
            Term(name=name, value=value, unit=unit, note=note)
            for name, value, unit, note in self.noted
        )


def plan(
    polling: Polling,
    subscribers: int,
    rules: PollingRules,
    now: datetime,
    jitter: float = 0.0,
    planning_context: PlanningContext | None = None,
    *,
    is_pushed: bool = False,
) -> Plan:
    """Plan from the state after a fetch that ended ``now``; jitter is -1 to 1.

    ``is_pushed``: the feed's hub is trusted to push what is new. Without a context the
    price is the patience of the rules.
    """
    terms: list[_Noted] = []
    planning_context = planning_context or PlanningContext(price=rules.patience)
    forecast = foresee(polling.posting, planning_context.prior, now)
    habit = forecast.profile.at(forecast.start)
    rate = DAY * (forecast.steady * habit + forecast.excited)
    terms += (
        (
            "rate",
            forecast.per_day,
            "entries/day",
            "forecast by its posts of weeks, or of hours if it is new",
        ),
        (
            "habit",
            habit,
            "",
            "of that at this hour and weekday; 1: the mean",
        ),
        (
            "burst",
            DAY * forecast.excited,
            "entries/day",
            "besides, by its posts of the last hours",
        ),
        ("rate now", rate, "entries/day", "expected now, of all these"),
    )
    wanted = _wanted(polling, forecast, subscribers, rules, planning_context, terms)
    floor = _floor(polling, rules, habit, rate, terms)
    wished = _wished(polling, wanted, terms)
    least = max(floor, wished, rules.min_period)
    promised = _promised(polling, rules, rate, planning_context.price, terms)
    period = min(max(wanted, least), rules.max_period)
    if is_pushed:
        period = _backup(period, rules, terms)
    else:
        period = min(period, max(promised, least))
    spread = min(JITTER * period, LONGEST_JITTER)
    wait = min(period + spread * jitter, max(promised, period))
    wait = max(min(least, rules.max_period), wait)
    reason = PollReason.BACKUP if is_pushed else PollReason.PLANNED
    if polling.failures:
        pause = backoff(polling.code or 0, polling.failures, period)
        period, wait = _paused(pause, rules, jitter, terms)
        reason = PollReason.RETRY_AFTER_FAILURE
    elif polling.settling_since is not None and not is_pushed:
        settling = max(wished, _settling_in(polling, rules, now, terms))
        settling += min(JITTER * settling, spread) * (1 + jitter) / 2
        if settling < wait:
            wait, reason = settling, PollReason.SETTLING_IN
    is_settling = reason is PollReason.SETTLING_IN
    between = "between two polls, " + (
        "once it has settled in, " if is_settling else ""
    )
    terms.append(("period", period, "s", f"{between}before jitter"))
    planned = now + timedelta(seconds=wait)
    earliest = _after_server_floors(polling, rules, now, planned, terms)
    next_fetch = after_skipped(polling.hints, earliest)
    if next_fetch > earliest:
        next_fetch += timedelta(seconds=abs(jitter) * SKIP_SPREAD)
        moved = (next_fetch - earliest).total_seconds()
        terms.append(("skip", moved, "s", "to the end of skipHours and skipDays"))
    if next_fetch > planned and not polling.failures:
        reason = PollReason.HELD_BACK  # as server or document ask
    return Plan(
        period=period,
        next_fetch=next_fetch,
        reason=reason,
        noted=tuple(terms),
        forecast=forecast,
    )


def _wanted(
    polling: Polling,
    forecast: Forecast,
    subscribers: int,
    rules: PollingRules,
    planning_context: PlanningContext,
    terms: list[_Noted],
) -> float:
    weight = 1 + log2(max(1, subscribers))
    room = entries_before_loss(polling.entry_count)
    wanted = seconds_until(
        forecast, planning_context.price / weight, rules.max_period, room
    )
    terms += (
        (
            "price",
            planning_context.price,
            "entry-seconds",
            "of waiting, of all its new entries together, are worth a poll",
        ),
        (
            "weight",
            weight,
            "",
            "by its subscribers: 1 for one, and 1 more each time they double",
        ),
        (
            "wanted",
            wanted,
            "s",
            "until new entries are expected to have waited that long, by the weight",
        ),
    )
    return wanted


def _floor(
    polling: Polling,
    rules: PollingRules,
    habit: float,
    rate: float,
    terms: list[_Noted],
) -> float:
    floor, note = _earned_floor(polling, rules, habit, rate)
    if polling.is_resource and floor < RESOURCE_FLOOR:
        floor, note = RESOURCE_FLOOR, "a resource that is not a feed"
    floor = min(floor, rules.max_period)
    terms.append(("floor", floor, "s", note))
    return floor


def _earned_floor(
    polling: Polling, rules: PollingRules, habit: float, rate: float
) -> tuple[float, str]:
    """The least period by what the server supports and how often the feed posts.

    What counts is the rate that is expected at this hour, in entries a day.
    """
    is_fast = rate >= rules.fast_rate
    if not polling.answers_304:
        declared = 0.0  # seconds that the last good answer was declared fresh for
        if polling.fresh_until is not None and polling.last_success is not None:
            declared = (polling.fresh_until - polling.last_success).total_seconds()
        is_short = 0 < declared < rules.earned_floor
        if polling.validators is not None and is_fast and is_short:
            return rules.min_period, "posts all the time, with a max-age below 15 min"
        if polling.body_bytes >= LARGE_BODY:
            return (
                3 * rules.default_floor,
                f"{NO_304}, and its document has 1 MB or more",
            )
        if polling.body_bytes >= SIZEABLE_BODY:
            return (
                2 * rules.earned_floor,
                f"{NO_304}, and its document has 256 kB or more",
            )
        return rules.earned_floor, NO_304
    if is_fast:
        return rules.min_period, "can answer 304, and posts all the time"
    if rate >= rules.expected_rate:
        return rules.expected_floor, "can answer 304, and is expected to post soon"
    if habit >= AWAKE:
        return rules.earned_floor, "can answer 304, and is not asleep"
    return rules.default_floor, "asleep at this hour"


NO_304 = "its server has never answered “304 Not Modified”"
PROMISE_PRICE = 5_000.0
"""Above this price of a poll the budget does not pay for the promised periods."""


def _promised(
    polling: Polling,
    rules: PollingRules,
    rate: float,
    price: float,
    terms: list[_Noted],
) -> float:
    """The longest period that is promised, as far as the budget goes."""
    longest, note = rules.promised, "because its server can answer 304"
    if not polling.answers_304:
        longest, note = (
            rules.promised_without_304,
            "because its server has not answered 304",
        )
    if rate >= rules.earning_rate and rules.promised_awake < longest:
        longest, note = rules.promised_awake, "while it is awake"
    longest *= sqrt(max(1.0, price / PROMISE_PRICE))
    terms.append(("promised", longest, "s", note))
    return longest


def _backup(period: float, rules: PollingRules, terms: list[_Noted]) -> float:
    """ "poll at max(24 h, 12 x policy) while push works", within what is allowed."""
    rare = max(rules.backup_period, BACKUP_FACTOR * period)
    rare = max(period, min(rare, rules.max_period))
    terms.append(("pushed", rare, "s", "its hub pushes new entries"))
    return rare


def _wished(polling: Polling, wanted: float, terms: list[_Noted]) -> float:
    """The longest period that the document asks for and posting does not contradict."""
    longest = 0.0
    wishes = (
        ("ttl", ttl_seconds(polling.hints)),
        ("sy:updatePeriod", update_period_seconds(polling.hints)),
    )
    for name, wish in wishes:
        if is_believed(wish, wanted):
            longest = max(longest, wish)
            terms.append((name, wish, "s", "requested by the feed"))
        elif wish:
            terms.append((name, wish, "s", "ignored: it posts far more often"))
    return longest


def _paused(
    pause: Backoff, rules: PollingRules, jitter: float, terms: list[_Noted]
) -> tuple[float, float]:
    """Period and wait of a feed in error: full jitter above the shortest wait."""
    share = (1 + jitter) / 2
    spread = max(pause.longest - pause.shortest, JITTER * pause.shortest)
    wait = pause.shortest + spread * share
    terms.append(("backoff", pause.longest, "s", pause.why))
    return max(pause.longest, rules.min_period), max(wait, rules.min_period)


def is_settled(since: datetime, at: datetime) -> bool:
    """Whether a feed whose first good answer came at ``since`` is no longer new."""
    return (at - since).total_seconds() >= SETTLING[-1]


def _settling_in(
    polling: Polling, rules: PollingRules, now: datetime, terms: list[_Noted]
) -> float:
    """The longest wait of a feed that is new.

    The first of these polls shows whether its server answers 304. If it does not, a
    large document is requested no more often than its floor allows.
    """
    is_first = polling.last_success == polling.settling_since
    is_sizeable = polling.body_bytes >= SIZEABLE_BODY and not polling.answers_304
    if is_sizeable and not is_first:
        return inf
    age = (now - (polling.settling_since or now)).total_seconds()
    if not (steps := [step for step in SETTLING if step > age]):
        return inf
    wait, note = steps[0] - age, "polled 1, 5 and 15 minutes after its first fetch"
    if wait > SETTLING_BUSY and (why := _why_busy(polling, now)):
        wait, note = SETTLING_BUSY, f"polled every minute at first, because {why}"
    least = RESOURCE_FLOOR if polling.is_resource else SETTLING_BUSY
    wait = min(max(wait, least, rules.min_period), rules.max_period)
    terms.append(("settling", wait, "s", note))
    return wait


def _why_busy(polling: Polling, now: datetime) -> str:
    """Why a new feed may post any minute; "" if nothing says so."""
    if burst_of(polling.posting, now) >= JUST_POSTED:
        return "it has just posted"
    return "" if polling.entry_count or polling.is_resource else "it has no entries yet"


def _after_server_floors(
    polling: Polling,
    rules: PollingRules,
    now: datetime,
    planned: datetime,
    terms: list[_Noted],
) -> datetime:
    """The planned time, or later if the server asks for it, within the rules."""
    floors = (
        ("fresh", polling.fresh_until, rules.longest_freshness, "max-age or Expires"),
        ("retry after", polling.retry_after, rules.longest_retry_after, "Retry-After"),
    )
    for name, until, longest, note in floors:
        if until is None or until <= now:
            continue
        until = min(until, now + timedelta(seconds=longest))
        planned = max(planned, until)
        left = (until - now).total_seconds()
        terms.append((name, left, "s", f"{note}: not polled before"))
    return planned


# --- what a document asks for --------------------------------------------------------

LONGEST_TTL = 3_600.0
IGNORED_ABOVE = 3.0
"""A wish for more than so many times the period that posting asks for is ignored."""

_MINUTE = 60.0
_HOUR = timedelta(hours=1)
_HOURS_A_WEEK = 7 * 24
_SECONDS = {
    "hourly": 3_600.0,
    "daily": 86_400.0,
    "weekly": 7 * 86_400.0,
    "monthly": 30 * 86_400.0,
    "yearly": 365 * 86_400.0,
}


def ttl_seconds(hints: Hints) -> float:
    """RSS ``ttl``, at most an hour; 0 when there is none."""
    if not hints.ttl_minutes:
        return 0.0
    return min(max(hints.ttl_minutes, 0) * _MINUTE, LONGEST_TTL)


def update_period_seconds(hints: Hints) -> float:
    """``sy:updatePeriod`` over ``sy:updateFrequency``; 0 when there is none.

    Hourly, once, is what WordPress writes whatever the truth, and says nothing.
    """
    if not hints.update_period:
        return 0.0
    unit = _SECONDS.get(hints.update_period.strip().lower(), 0.0)
    seconds = unit / max(hints.update_frequency or 1, 1)
    return 0.0 if seconds == _SECONDS["hourly"] else seconds


def is_believed(wish: float, wanted: float) -> bool:
    """Whether a wish is one that the feed's own posting does not contradict."""
    return 0 < wish <= IGNORED_ABOVE * wanted


def after_skipped(hints: Hints, moment: datetime) -> datetime:
    """The moment, or the end of the ``skipHours`` and ``skipDays`` it falls in.

    Hints that skip the whole week are ignored.
    """
    if not hints.skip_hours and not hints.skip_days:
        return moment
    skipped = moment
    for _ in range(_HOURS_A_WEEK):
        if not _is_skipped(hints, skipped):
            return skipped
        skipped = skipped.replace(minute=0, second=0, microsecond=0) + _HOUR
    return moment


def _is_skipped(hints: Hints, moment: datetime) -> bool:
    return moment.hour in hints.skip_hours or moment.weekday() in hints.skip_days


# --- errors --------------------------------------------------------------------------

FIRST_REFUSED = 6 * 3_600.0
FIRST_MISSING = 3_600.0
FIRST_FAILED = 300.0
LONGEST = 86_400.0

_DOUBLED = "doubled with each failure up to 24 h"
_MOST_FAILED_DOUBLINGS = 20  # beyond every limit, and short of an overflow


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """A wait in seconds, drawn between the two; if they are equal, only with jitter."""

    shortest: float
    longest: float
    why: str


def backoff(code: int, failures: int, period: float) -> Backoff:
    """The wait after so many failures in a row, the last with this status.

    ``code`` 0: there was no answer at all. ``period``: what it would be without errors.
    """
    doublings = min(failures - 1, _MOST_FAILED_DOUBLINGS)
    if code == 429:
        # "429: max(Retry-After, 2x interval)"; Retry-After is a floor elsewhere.
        wait = max(FIRST_MISSING, min(period, LONGEST) * 2 ** (doublings + 1))
        return _exactly(wait, f"too many requests: twice its period, {_DOUBLED}")
    if code in (401, 403, 451):
        return _exactly(FIRST_REFUSED * 2**doublings, f"refused: 6 h, {_DOUBLED}")
    if code == 0 or code >= 500:
        longest = min(FIRST_FAILED * 2 ** (doublings + 1), LONGEST)
        why = f"no usable answer: 5 min, at most {_DOUBLED}"
        return Backoff(shortest=FIRST_FAILED, longest=longest, why=why)
    what = "not found" if code >= 400 else "no feed that can be read"
    return _exactly(FIRST_MISSING * 2**doublings, f"{what}: 1 h, {_DOUBLED}")


def _exactly(wait: float, why: str) -> Backoff:
    wait = min(wait, LONGEST)
    return Backoff(shortest=wait, longest=wait, why=why)
