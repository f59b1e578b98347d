"""How often a feed posts, and at which hours, weekdays and minutes.

**Rates** are entries a day. The count of posts forgets over `MEMORY_DAYS`, so a rate
follows a feed that falls silent or wakes up. A second count forgets within hours, and
shows bursts.

**Habits** are counts by hour, weekday and five minutes of the hour, in UTC. Few posts
say little, so each profile is shrunk to the one of all feeds, as if that had been seen
for `PRIOR_POSTS` posts before the feed's own:

    P(h) = 24 (smooth(n24)[h] + k g24[h]) / (n + k)
    P(d) = 7 (n7[d] + k g7[d]) / (n + k)

with g the shares of all feeds (Bright, Gal and Raschid, TODS 2006, poll by such
profiles). Many publishers have a timer, so the five minutes of the hour are a profile
too, shrunk to an even one: M(m) = 12 (n12[m] + k'/12) / (n + k').

**Trust**: habits are believed as far as they have predicted posts; every n above is
multiplied by the profile's trust. Counts of any posts look like habits: five imports at
random times look like a habit of five hours. So each post is first compared with what
was known before it came. A profile that made the rate at that time f times the mean
rate explains the post f times as well as no habit would, and by the rule of Bayes the
trust in it becomes

    p <- p f / (p f + 1 - p)

This is learning with experts (Herbster and Warmuth, Machine Learning 1998): the trust
has bounds, so that old successes and failures do not count for ever, and a change of
habits is believed within a few posts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import repeat
from math import exp, inf, sqrt
from struct import Struct

import msgspec

from protocols.model import Entry
from storage.records import Posting

# --- rates ---------------------------------------------------------------------------

MEMORY_DAYS = 21.0
PRIOR_ENTRIES = 0.5
PRIOR_DAYS = 2.5
BURST_MEMORY = 7_200.0
"""Seconds over which the posts of a burst are forgotten."""
TOGETHER = 60.0
"""Posts at most so many seconds apart count as made together."""
LATE_DATES = timedelta(hours=1)
"""How far publishers' dates may lie before the poll that did not show the entries
yet."""
_MEMORY = MEMORY_DAYS * 86_400.0


def posting_history(entries: Iterable[Entry], at: datetime) -> Posting:
    """What the dates of a first document say about the time before it."""
    dates = sorted(min(entry.published, at) for entry in entries if entry.published)
    times = [date.timestamp() for date in dates]
    return with_posts(Posting(since=min(dates, default=at)), times, at)


def count_posts(
    posting: Posting, new: Iterable[Entry], last_success: datetime | None, at: datetime
) -> Posting:
    """Add new entries, each at its own date if that can be true.

    Otherwise it counts half-way between the poll that did not show it and this one.
    """
    since = last_success or at
    halfway = since + (at - since) / 2
    posts = []
    for entry in new:
        date = entry.published
        is_likely = date is not None and since - LATE_DATES < date <= at
        posts.append(date if date and is_likely else halfway)
    return with_posts(posting, sorted(map(datetime.timestamp, posts)), at)


def count_change(
    posting: Posting, last_success: datetime | None, at: datetime
) -> Posting:
    """Add one post without a date: a topic that is not a feed has changed."""
    since = last_success or at
    return with_posts(posting, [(since + (at - since) / 2).timestamp()], at)


def with_posts(posting: Posting, seconds: Sequence[float], at: datetime) -> Posting:
    """Add posts, in Unix seconds and in order of time, to all counts.

    No post is after ``at``, unless the clock went back meanwhile: then it counts as
    made now.
    """
    now = at.timestamp()
    weight, burst = _decayed(posting, at), burst_of(posting, at)
    shares = _shares(seconds)
    for post, share in zip(seconds, shares, strict=True):
        age = max(0.0, now - post)
        weight += exp(-age / _MEMORY)
        burst += share * exp(-age / BURST_MEMORY)
    counted = count_habits(read_habits(posting.habits), seconds, shares)
    return Posting(
        weight=weight,
        at=at,
        since=posting.since or at,
        burst=burst,
        habits=pack_habits(counted) if seconds else posting.habits,
    )


def _shares(seconds: Sequence[float]) -> list[float]:
    """How much each post says about when others come.

    Of posts that came together the second counts half as much as the first, and so on:
    fifty entries imported at once were one decision to post and count as four and a
    half (`TOGETHER`).
    """
    shares: list[float] = []
    together, last = 0, -inf
    for post in seconds:
        together = together + 1 if post - last <= TOGETHER else 1
        shares.append(1 / together)
        last = post
    return shares


def posting_rate(posting: Posting, now: datetime) -> float:
    """The rate in entries a day, the larger of two:

        (A + 1/2) / (S + 2.5 days)    and    (b + 1/2) / (S + 2.5 days / (1 + b)²)

    A are the posts, and S = τ(1 - e^(-T/τ)) the days in which they were made. The
    second rate is for a feed that is hardly known: what is assumed weighs less with
    each of its latest posts b, so that a feed that posts every few minutes is believed
    after a few of them. Entries that came at once count as hardly more than one.
    """
    seen, burst = _seen_days(posting, now), burst_of(posting, now)
    lasting = (_decayed(posting, now) + PRIOR_ENTRIES) / (seen + PRIOR_DAYS)
    latest = (burst + PRIOR_ENTRIES) / (seen + PRIOR_DAYS / (1 + burst) ** 2)
    return max(lasting, latest)


def velocity(posting: Posting, now: datetime) -> float:
    """The rate as it was seen, without the half entry that a feed starts with."""
    return round(_decayed(posting, now) / (_seen_days(posting, now) + PRIOR_DAYS), 3)


def is_new(posting: Posting, now: datetime) -> bool:
    """Whether the feed has been known for less than `PRIOR_DAYS`, the shortest time
    over which `velocity` takes a mean: it then posts more often than that says."""
    return posting.weight > 0 and _seen_days(posting, now) < PRIOR_DAYS


def burst_of(posting: Posting, now: datetime) -> float:
    """The posts of the last hours, each counting e^(-age/τ), τ of `BURST_MEMORY`."""
    if posting.at is None or not posting.burst:
        return posting.burst
    age = (now - posting.at).total_seconds()
    return posting.burst * exp(min(0.0, -age / BURST_MEMORY))


def watched_days(posting: Posting, now: datetime) -> float:
    """For how many days a feed's posts are known: since the oldest entry of its first
    document."""
    if posting.since is None:
        return 0.0
    return max(0.0, (now - posting.since).total_seconds() / 86_400)


def posts_known(posting: Posting, now: datetime) -> float:
    """How many posts show a feed's own hours, beside the `PRIOR_POSTS` of all."""
    seen = min(watched_days(posting, now) / DAYS_SEEN, 1)
    return read_habits(posting.habits).total * seen


def _decayed(posting: Posting, now: datetime) -> float:
    if posting.at is None or not posting.weight:
        return posting.weight
    age = (now - posting.at).total_seconds()
    return posting.weight * exp(min(0.0, -age / _MEMORY))


def _seen_days(posting: Posting, now: datetime) -> float:
    """The days that the count covers; days longer ago count for less."""
    if posting.since is None:
        return 0.0
    span = (now - posting.since).total_seconds()
    return MEMORY_DAYS * (1 - exp(min(0.0, -span / _MEMORY)))


# --- trust ---------------------------------------------------------------------------

FIRST_TRUST = 0.75
LEAST_TRUST, MOST_TRUST = 0.125, 0.984375
_EXACT_PARTS = 2_048
"""Half floats, in which trust is stored, are exact in these parts of 1."""


def trust_after(trust: float, factor: float) -> float:
    """The trust after a post at whose time the profile was ``factor``, of mean 1."""
    share = trust * factor
    held = min(max(share / (share + 1 - trust), LEAST_TRUST), MOST_TRUST)
    return round(held * _EXACT_PARTS) / _EXACT_PARTS


# --- habits --------------------------------------------------------------------------

PRIOR_POSTS = 12.0
PRIOR_MINUTES = 20.0
EVEN_POSTS = 24.0
"""By how many posts all feeds' habits are shrunk to even ones: a few feeds are not
representative."""
DAYS_SEEN, WEEKS_SEEN = 3.0, 14.0
"""Days after which a feed's own hours, and its own weekdays, count in full."""
MOST_COUNTED = 500.0
"""Posts after which all counts are halved, so that old habits fade."""
STEP = 300
"""Seconds of one of the twelve parts of an hour."""

_HOURS, _DAYS, _STEPS = 24, 7, 12
_LAST_HOUR = _HOURS - 1
_THURSDAY = 3  # the first day of the epoch, with Monday as 0
_layout = Struct(f"<{_HOURS + _DAYS + _STEPS + 3}e")
_untried_layout = Struct(f"<{_HOURS + _DAYS + _STEPS}e")
"""The layout of states from before trust in habits was stored."""
_WEEKLY = _HOURS * _DAYS

ALIKE = repeat(1.0)
"""The weights of posts that all count the same."""

Counts = tuple[float, ...]


def hour_of(moment: float) -> int:
    """The hour of a time in Unix seconds: 0 to 23, UTC."""
    return int(moment // 3_600) % _HOURS


def weekday_of(moment: float) -> int:
    """The weekday of a time in Unix seconds: 0 is Monday, UTC."""
    return (int(moment // 86_400) + _THURSDAY) % _DAYS


def step_of(moment: float) -> int:
    """Which five minutes of its hour a time in Unix seconds lies in: 0 to 11."""
    return int(moment % 3_600) // STEP


class PostingHabits(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of posts by hour, weekday and part of the hour, with the sum of each, and
    ``trust`` in each of the three, from 0 to 1."""

    hours: Counts = (0.0,) * _HOURS
    days: Counts = (0.0,) * _DAYS
    steps: Counts = (0.0,) * _STEPS
    total: float = 0.0
    trust: Counts = (FIRST_TRUST,) * 3


NOTHING_KNOWN = PostingHabits()


def read_habits(packed: bytes) -> PostingHabits:
    """The counts of a feed; zeros for a state from before there were any."""
    if len(packed) == _layout.size:
        counts = _layout.unpack(packed)
    elif len(packed) == _untried_layout.size:
        counts = (*_untried_layout.unpack(packed), *NOTHING_KNOWN.trust)
    else:
        return NOTHING_KNOWN
    return PostingHabits(
        hours=counts[:_HOURS],
        days=counts[_HOURS : _HOURS + _DAYS],
        steps=counts[_HOURS + _DAYS : -3],
        total=sum(counts[_HOURS : _HOURS + _DAYS]),
        trust=counts[-3:],
    )


def pack_habits(habits: PostingHabits) -> bytes:
    """Pack habits in 92 bytes: half floats, exact enough for counts up to
    `MOST_COUNTED`."""
    return _layout.pack(*habits.hours, *habits.days, *habits.steps, *habits.trust)


def count_habits(
    habits: PostingHabits, posts: Iterable[float], weights: Iterable[float] = ALIKE
) -> PostingHabits:
    """Add posts, given in Unix seconds, each with its weight.

    A post that weighs less than 1 came with the one before it, and does not show
    whether the habits predict posts.
    """
    hours, days, steps = list(habits.hours), list(habits.days), list(habits.steps)
    total, trust = habits.total, habits.trust
    for post, each in zip(posts, weights, strict=False):
        hour, day, step = hour_of(post), weekday_of(post), step_of(post)
        if each == 1:
            expected = (
                _factor(_smooth(hours, hour), total, _HOURS, PRIOR_POSTS),
                _factor(days[day], total, _DAYS, PRIOR_POSTS),
                _factor(steps[step], total, _STEPS, PRIOR_MINUTES),
            )
            trust = tuple(map(trust_after, trust, expected))
        hours[hour] += each
        days[day] += each
        steps[step] += each
        total += each
        if total > MOST_COUNTED:
            total /= 2
            for counts in (hours, days, steps):
                counts[:] = [count / 2 for count in counts]
    return PostingHabits(
        hours=tuple(hours),
        days=tuple(days),
        steps=tuple(steps),
        total=total,
        trust=trust,
    )


def _factor(count: float, total: float, parts: int, prior: float) -> float:
    """The factor of a feed's own profile on a rate, shrunk to an even one."""
    return (parts * count + prior) / (total + prior)


class Prior(msgspec.Struct, frozen=True, kw_only=True):
    """The weight of all feeds' habits before a feed's own: k g24 and k g7."""

    hours: Counts
    days: Counts


def prior_of(feeds: Iterable[tuple[PostingHabits, float]]) -> Prior:
    """The shares of all posts by hour, smoothed, and by weekday; even while unknown.

    ``feeds``: the habits of each, and for how many days it was watched: as in its own
    profile, habits count in full only after some days. A feed counts by the root of its
    posts, as one that posts all the time does not stand for all.
    """
    hours, weekdays = [0.0] * _HOURS, [0.0] * _DAYS
    for own, watched in feeds:
        if own.total:
            root = sqrt(own.total)
            _add(hours, own.hours, min(watched / DAYS_SEEN, 1) / root)
            _add(weekdays, own.days, min(watched / WEEKS_SEEN, 1) / root)
    smooth = [_smooth(hours, hour) for hour in range(_HOURS)]
    return Prior(hours=_shrunk(smooth), days=_shrunk(weekdays))


def _add(counts: list[float], more: Counts, weight: float) -> None:
    for place, count in enumerate(more):
        counts[place] += weight * count


def _shrunk(counts: Sequence[float]) -> Counts:
    """The counts, shrunk to even ones and scaled to their weight in a profile."""
    even = EVEN_POSTS / len(counts)
    scale = PRIOR_POSTS / (sum(counts) + EVEN_POSTS)
    return tuple([scale * (count + even) for count in counts])


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """Factors on a feed's rate, for each hour, weekday and part of an hour.

    Each of the three has the mean 1 over its range. Factors are computed when asked
    for: most forecasts end within a few hours.
    """

    own: PostingHabits
    prior: Prior
    days: float = inf
    """For how long the feed was watched: it is not known to be silent at hours and on
    weekdays that have not come yet."""

    def at(self, moment: float) -> float:
        """The factor P(h) P(d) at a time in Unix seconds."""
        own, prior = self.own, self.prior
        of_hours = own.trust[0] * min(self.days / DAYS_SEEN, 1)
        of_days = own.trust[1] * min(self.days / WEEKS_SEEN, 1)
        in_hours = int(moment) // 3_600
        hour, day = in_hours % _HOURS, (in_hours // _HOURS + _THURSDAY) % _DAYS
        hours, total = own.hours, own.total
        by_hour = (
            0.5 * hours[hour] + 0.25 * (hours[hour - 1] + hours[hour - _LAST_HOUR])
        ) * of_hours + prior.hours[hour]
        by_day = own.days[day] * of_days + prior.days[day]
        posts = (total * of_hours + PRIOR_POSTS) * (total * of_days + PRIOR_POSTS)
        return _WEEKLY * by_hour * by_day / posts

    def steps(self) -> Counts:
        """The factor M of each five minutes of an hour."""
        trust = self.own.trust[2]
        scale = _STEPS / (trust * self.own.total + PRIOR_MINUTES)
        even = scale * PRIOR_MINUTES / _STEPS
        return tuple([scale * trust * count + even for count in self.own.steps])


def _smooth(hours: Sequence[float], hour: int) -> float:
    """An hour's count, smoothed: each hour gives a quarter to either neighbour."""
    beside = hours[hour - 1] + hours[hour - _LAST_HOUR]
    return 0.5 * hours[hour] + 0.25 * beside
