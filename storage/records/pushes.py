"""Feeds that somebody else's hub may push: what they offer, and how that has gone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from protocols.quick import quick_init


class PushWay(StrEnum):
    WEBSUB = "websub"
    CLOUD = "rsscloud"


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class PushOffer:
    """Where a feed says that it can be had without being asked for.

    ``marks`` are what its own documents are known by: their id and addresses.
    """

    way: PushWay
    hub: str  # where one subscribes
    topic: str  # to what
    marks: tuple[str, ...] = ()


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class PushRecord:
    """How well a feed was pushed; it decides how rarely the feed is polled."""

    proofs: int = 0  # pushes in a row of what no poll had found
    needed: int = 2  # as many of them are believed
    brought: int = 0  # all of them
    late: int = 0  # pushes of what a poll had just found
    foreign: int = 0  # pushes of no document of the feed
    missed: int = 0  # polls that found what nobody had pushed
    missed_at: datetime | None = None  # the last of these, until it is judged
    pushed_at: datetime | None = None  # when it was last told of anything


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """What a fetch has to know of it. ``until``: the end of the subscription at the
    hub; ``hinted_at``: when the hub said that there is news, not what."""

    offer: PushOffer | None
    record: PushRecord = PushRecord()
    until: datetime | None = None
    hinted_at: datetime | None = None


class PushCount(StrEnum):
    """What is counted of each hub."""

    REQUESTED = "requested"  # subscriptions asked for, renewals included
    CONFIRMED = "confirmed"
    REFUSED = "refused"  # answered with an error, or denied
    UNANSWERED = "unanswered"  # no answer, or no confirmation
    LAPSED = "lapsed"  # leases that ended without a successor
    DELIVERED = "delivered"  # requests to callbacks that were taken
    FORGED = "forged"  # not signed, or wrongly
    REJECTED = "rejected"  # too large, too many, or no longer wanted
    BROUGHT = "brought"  # feeds' news that was pushed first
    LATE = "late"
    FOREIGN = "foreign"
    MISSED = "missed"  # feeds' news that polls found


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class PushWrite:
    """What a fetch changes of a feed's push. ``is_turned``: its hub is to be asked
    anew. Hints up to ``heeded_until`` are heeded."""

    push: Push
    is_turned: bool = False
    heeded_until: datetime | None = None
    counted: tuple[PushCount, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PushHub:
    """What became of all feeds' requests and pushes at one hub."""

    hub: str
    counts: tuple[tuple[PushCount, int], ...]
