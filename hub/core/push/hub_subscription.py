"""The next step for one feed's subscription at another hub.

Pure: the feed's row and the time in, one step out. The step is done and stored, and the
next one requested, until there is nothing to do but wait. `push_facts` tells people how
a feed is pushed.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from hub.core.push.hub_trust import is_trusted
from storage.records import (
    CallbackState,
    FeedPush,
    FeedState,
    PushCallback,
    PushOffer,
    PushWay,
)

LEASE = timedelta(days=10)
"""The lease that hubs are asked for; "10 days is a good default" (WebSub 5.1)."""
CONFIRMED_WITHIN = timedelta(hours=1)
"""How long to wait for confirmation: hubs verify "as soon as possible", some in a
queue."""
LEAST_PAUSE = timedelta(hours=1)
"""The shortest time between two requests for one feed, whatever its hub says of
leases."""
DOUBT_PAUSE = timedelta(days=1)
"""The shortest time between two requests because a trusted hub missed something."""
ENDED_WITHIN = timedelta(hours=1)
"""How long a hub may ask whether the end of a subscription was meant."""
LONGEST_BACKOFF = timedelta(days=7)
_RENEWED_BEFORE = {PushWay.WEBSUB: 0.2, PushWay.CLOUD: 0.04}
"""The part of a lease that is left when it is renewed: "a subscription expires after 25
hours, and should be renewed every 24 hours" (rssCloud)."""


class SubscribeAtHub(msgspec.Struct, frozen=True):
    """Subscribe under a new callback."""

    offer: PushOffer


class LeaveHub(msgspec.Struct, frozen=True):
    """Tell the hub that a callback is not wanted any more."""

    callback: PushCallback


class DropCallback(msgspec.Struct, frozen=True):
    """Forget a callback whose time is over."""

    callback: PushCallback


class ForgetPush(msgspec.Struct, frozen=True):
    """Delete the feed's push: it is not pushed, and nothing is left of it."""


class WaitUntil(msgspec.Struct, frozen=True):
    """Do nothing before that time."""

    until: datetime | None


PushStep = SubscribeAtHub | LeaveHub | DropCallback | ForgetPush | WaitUntil


def next_step(upstream: FeedPush, now: datetime, *, is_on: bool = True) -> PushStep:
    """The next step; ``is_on`` False: no feed is to be pushed."""
    over = [each for each in upstream.callbacks if each.until <= now]
    if over:
        return DropCallback(over[0])
    offer = wanted_offer(upstream) if is_on else None
    kept = _kept(upstream, offer)
    for each in upstream.callbacks:
        if each not in kept and each.state is not CallbackState.ENDING:
            return LeaveHub(each)
    if offer is None:
        return _wind_up(upstream, now)
    ends = [each.until for each in upstream.callbacks]
    if any(each.state is CallbackState.ASKED for each in kept):
        return WaitUntil(min(ends))
    asks_at = _asks_at(upstream, kept, now)
    return SubscribeAtHub(offer) if asks_at <= now else WaitUntil(min([asks_at, *ends]))


def wanted_offer(upstream: FeedPush) -> PushOffer | None:
    """The offer to take; None for a feed that is not polled, or has credentials."""
    is_polled = upstream.feed_state is FeedState.ACTIVE
    return upstream.push.offer if is_polled and not upstream.has_credentials else None


def request_backoff(failures: int, share: float) -> timedelta:
    """The pause after so many failed requests in a row; ``share`` is 0 to 1."""
    doubled: int = 2 ** min(failures, 12)
    longest = min(LEAST_PAUSE * doubled, LONGEST_BACKOFF)
    return longest * (0.5 + share / 2)


def _kept(upstream: FeedPush, offer: PushOffer | None) -> list[PushCallback]:
    """The newest active callback of the offer, and those the hub may yet confirm."""
    if offer is None:
        return []
    place = (offer.way, offer.hub, offer.topic)
    ours = [it for it in upstream.callbacks if (it.way, it.hub, it.topic) == place]
    active = [each for each in ours if each.state is CallbackState.ACTIVE]
    unconfirmed = [each for each in ours if each.state is CallbackState.ASKED]
    return active[-1:] + unconfirmed[-1:]


def _wind_up(upstream: FeedPush, now: datetime) -> PushStep:
    """Forget the push in the end, but not at once.

    A feed that names hubs in turn must not make this hub send requests to all of them.
    """
    if upstream.callbacks:
        return WaitUntil(min(each.until for each in upstream.callbacks))
    if upstream.push.offer is not None:
        return WaitUntil(None)
    free_at = _free_at(upstream, now)
    return ForgetPush() if free_at <= now else WaitUntil(free_at)


def _free_at(upstream: FeedPush, now: datetime) -> datetime:
    return now if upstream.asked_at is None else upstream.asked_at + LEAST_PAUSE


def _asks_at(upstream: FeedPush, kept: list[PushCallback], now: datetime) -> datetime:
    allowed_at = max(upstream.retry_at or now, _free_at(upstream, now))
    if not kept:
        return allowed_at
    current = kept[-1]
    lease = current.until - current.asked_at
    renewed_at = current.until - lease * _RENEWED_BEFORE[current.way]
    if upstream.push.record.missed_at is not None:
        renewed_at = min(renewed_at, current.asked_at + DOUBT_PAUSE)
    return max(renewed_at, allowed_at)


class PushState(StrEnum):
    UNWANTED = "unwanted"  # its feed is not polled either
    WAITING = "waiting"  # still to be requested, perhaps after failures
    ASKED = "asked"  # its hub has yet to confirm it
    SUBSCRIBED = "subscribed"


class PushFacts(msgspec.Struct, frozen=True, kw_only=True):
    """How a feed is pushed. ``is_trusted``: its hub pushes all news, so polls are
    rare."""

    way: PushWay
    hub: str
    topic: str
    state: PushState
    is_trusted: bool
    until: datetime | None  # the end of the lease
    asked_at: datetime | None
    retry_at: datetime | None
    error: str  # why the last request led to nothing
    pushed_at: datetime | None
    brought: int  # pushes of news that no poll had found
    late: int
    missed: int  # polls that found news that nobody had pushed
    foreign: int
    is_hinted: bool = False  # the hub told of news that no fetch has seen yet


def push_facts(upstream: FeedPush | None, now: datetime) -> PushFacts | None:
    """How a feed is pushed; None for a feed that nobody could push."""
    if upstream is None or upstream.push.offer is None:
        return None
    push, record = upstream.push, upstream.push.record
    offer = upstream.push.offer
    return PushFacts(
        way=offer.way,
        hub=offer.hub,
        topic=offer.topic,
        state=_state(upstream, now),
        is_trusted=is_trusted(push, now),
        until=push.until,
        asked_at=upstream.asked_at,
        retry_at=upstream.retry_at,
        error=upstream.error,
        pushed_at=record.pushed_at,
        brought=record.brought,
        late=record.late,
        missed=record.missed,
        foreign=record.foreign,
        is_hinted=upstream.push.hinted_at is not None,
    )


def _state(upstream: FeedPush, now: datetime) -> PushState:
    if wanted_offer(upstream) is None:
        return PushState.UNWANTED
    if upstream.push.until is not None and upstream.push.until > now:
        return PushState.SUBSCRIBED
    states = [each.state for each in upstream.callbacks]
    return PushState.ASKED if CallbackState.ASKED in states else PushState.WAITING
