"""What is done next about one feed's subscription at a hub of somebody else.

Pure: the row of the feed and the time in, one step out. It is done, stored, and the
next one asked for, until there is nothing to do but wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from storage.records import (
    CallbackState,
    FeedState,
    PushCallback,
    PushOffer,
    PushWay,
    Upstream,
)

LEASE = timedelta(days=10)
"""What hubs are asked for; "10 days is a good default" (WebSub 5.1)."""
CONFIRMED_WITHIN = timedelta(hours=1)
"""Hubs verify "as soon as possible", and some in a queue."""
LEAST_PAUSE = timedelta(hours=1)
"""Between two requests for one feed, whatever its hub says of leases."""
DOUBT_PAUSE = timedelta(days=1)
"""Between two requests because a hub that was believed missed something."""
ENDED_WITHIN = timedelta(hours=1)
"""How long a hub may ask whether the end of a subscription was meant."""
LONGEST_BACKOFF = timedelta(days=7)
_RENEWED_BEFORE = {PushWay.WEBSUB: 0.2, PushWay.CLOUD: 0.04}
"""The part of a lease that is left when it is renewed: "a subscription expires after 25
hours, and should be renewed every 24 hours" (rssCloud)."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Subscribe under a new callback."""

    offer: PushOffer


@dataclass(frozen=True, slots=True)
class Leave:
    """Tell the hub that a callback is not wanted any more."""

    callback: PushCallback


@dataclass(frozen=True, slots=True)
class Drop:
    """Forget a callback whose time is over."""

    callback: PushCallback


@dataclass(frozen=True, slots=True)
class Forget:
    """The feed is not pushed, and nothing is left of it."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing before then."""

    until: datetime | None


Step = Ask | Leave | Drop | Forget | Rest


def next_step(upstream: Upstream, now: datetime, *, is_on: bool = True) -> Step:
    """Switched off, no feed is wanted to be pushed."""
    over = [each for each in upstream.callbacks if each.until <= now]
    if over:
        return Drop(over[0])
    offer = wanted_offer(upstream) if is_on else None
    kept = _kept(upstream, offer)
    for each in upstream.callbacks:
        if each not in kept and each.state is not CallbackState.ENDING:
            return Leave(each)
    if offer is None:
        return _wind_up(upstream, now)
    ends = [each.until for each in upstream.callbacks]
    if any(each.state is CallbackState.ASKED for each in kept):
        return Rest(min(ends))
    asks_at = _asks_at(upstream, kept, now)
    return Ask(offer) if asks_at <= now else Rest(min([asks_at, *ends]))


def wanted_offer(upstream: Upstream) -> PushOffer | None:
    """None for a feed that is not polled either, or that only we are shown."""
    is_polled = upstream.feed_state is FeedState.ACTIVE
    return upstream.push.offer if is_polled and not upstream.has_credentials else None


def backoff(failures: int, share: float) -> timedelta:
    """After so many requests in a row that led to nothing; ``share`` is 0 to 1."""
    doubled: int = 2 ** min(failures, 12)
    longest = min(LEAST_PAUSE * doubled, LONGEST_BACKOFF)
    return longest * (0.5 + share / 2)


def _kept(upstream: Upstream, offer: PushOffer | None) -> list[PushCallback]:
    """The newest active callback of the offer, and those the hub may yet confirm."""
    if offer is None:
        return []
    place = (offer.way, offer.hub, offer.topic)
    ours = [it for it in upstream.callbacks if (it.way, it.hub, it.topic) == place]
    active = [each for each in ours if each.state is CallbackState.ACTIVE]
    asked = [each for each in ours if each.state is CallbackState.ASKED]
    return active[-1:] + asked[-1:]


def _wind_up(upstream: Upstream, now: datetime) -> Step:
    """What was asked not long ago is remembered: a feed that names hubs in turn is not
    to have all of them asked."""
    if upstream.callbacks:
        return Rest(min(each.until for each in upstream.callbacks))
    if upstream.push.offer is not None:
        return Rest(None)
    free_at = _free_at(upstream, now)
    return Forget() if free_at <= now else Rest(free_at)


def _free_at(upstream: Upstream, now: datetime) -> datetime:
    return now if upstream.asked_at is None else upstream.asked_at + LEAST_PAUSE


def _asks_at(upstream: Upstream, kept: list[PushCallback], now: datetime) -> datetime:
    allowed_at = max(upstream.retry_at or now, _free_at(upstream, now))
    if not kept:
        return allowed_at
    current = kept[-1]
    lease = current.until - current.asked_at
    renewed_at = current.until - lease * _RENEWED_BEFORE[current.way]
    if upstream.push.record.missed_at is not None:
        renewed_at = min(renewed_at, current.asked_at + DOUBT_PAUSE)
    return max(renewed_at, allowed_at)
