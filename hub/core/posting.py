"""How often a feed posts: counts of new entries that decay, and the rates they imply.

Rates are entries a day. The count forgets over `MEMORY_DAYS`, so a rate follows a
feed that falls silent or wakes up. A second count forgets within hours, and shows
bursts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from math import exp, inf

from hub.core.habits import count_habits, pack_habits, read_habits
from protocols.model import Entry
from storage.records import Posting

MEMORY_DAYS = 21.0
PRIOR_ENTRIES = 0.5
PRIOR_DAYS = 2.5
BURST_MEMORY = 7_200.0
"""Seconds over which the posts of a burst are forgotten."""
TOGETHER = 60.0
"""Seconds between two posts of which one is no answer to the other, at most."""
LATE_DATES = timedelta(hours=1)
"""Publishers' dates may lie so much before the poll that did not show them yet."""
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
    halfway = _halfway(since, at)
    posts = []
    for entry in new:
        date = entry.published
        is_likely = date is not None and since - LATE_DATES < date <= at
        posts.append(date if date and is_likely else halfway)
    return with_posts(posting, sorted(post.timestamp() for post in posts), at)


def count_change(
    posting: Posting, last_success: datetime | None, at: datetime
) -> Posting:
    """Add one post without a date: a topic that is no feed is no longer the same."""
    return with_posts(posting, [_halfway(last_success or at, at).timestamp()], at)


def with_posts(posting: Posting, seconds: Sequence[float], at: datetime) -> Posting:
    """Add posts in Unix seconds, in order of time, to all.

    None is after ``at``; but if the clock went back meanwhile, it counts as of now.
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
    """What each post says about when others come: of those that came together the
    second half as much as the first, and so on. Fifty entries imported at once were one
    decision to post, as `TOGETHER` has it, and count as four and a half."""
    shares: list[float] = []
    together, last = 0, -inf
    for post in seconds:
        together = together + 1 if post - last <= TOGETHER else 1
        shares.append(1 / together)
        last = post
    return shares


def _halfway(since: datetime, at: datetime) -> datetime:
    return since + (at - since) / 2


def posting_rate(posting: Posting, now: datetime) -> float:
    """λ = (A + 1/2) / (τ(1 - e^(-T/τ)) + 2.5 days), in entries a day."""
    return (_decayed(posting, now) + PRIOR_ENTRIES) / _observed_days(posting, now)


def velocity(posting: Posting, now: datetime) -> float:
    """The rate as it was seen, without the half entry that a feed starts with."""
    return round(_decayed(posting, now) / _observed_days(posting, now), 3)


def burst_of(posting: Posting, now: datetime) -> float:
    """The posts of the last hours, each counting e^(-age/τ), τ of `BURST_MEMORY`."""
    if posting.at is None or not posting.burst:
        return posting.burst
    age = (now - posting.at).total_seconds()
    return posting.burst * exp(min(0.0, -age / BURST_MEMORY))


def watched_days(posting: Posting, now: datetime) -> float:
    """For how long anything is known of a feed: since its first document's oldest."""
    if posting.since is None:
        return 0.0
    return max(0.0, (now - posting.since).total_seconds() / 86_400)


def _decayed(posting: Posting, now: datetime) -> float:
    if posting.at is None or not posting.weight:
        return posting.weight
    age = (now - posting.at).total_seconds()
    return posting.weight * exp(min(0.0, -age / _MEMORY))


def _observed_days(posting: Posting, now: datetime) -> float:
    if posting.since is None:
        return PRIOR_DAYS
    span = (now - posting.since).total_seconds()
    return MEMORY_DAYS * (1 - exp(min(0.0, -span / _MEMORY))) + PRIOR_DAYS
