"""Subscriptions: who is told what, and how."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from protocols.quick import quick_init
from storage.records.identities import AccountId, FeedId, Position, SubscriptionId


class SubscriptionState(StrEnum):
    PENDING = "pending"  # not yet verified: receives nothing
    ACTIVE = "active"
    ENDING = "ending"  # ended; the subscriber is still to be told by a denial
    ENDED = "ended"


class Format(StrEnum):
    JSON = "json"
    ATOM = "atom"
    AS_IS = "as-is"
    BY_TOPIC = "by-topic"  # a feed as Atom, anything else as it is


class Updates(StrEnum):
    """Which ``updated`` and ``deleted`` records a subscription asks for."""

    NONE = "none"
    FRESH = "fresh"  # only entries whose own date was under 3 minutes old
    ALL = "all"  # every update, and deletions


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSubscription:
    account: AccountId
    topic: str
    feed_id: FeedId
    callback: str
    secret: str = ""
    algorithm: str = "sha256"
    format: Format = Format.JSON
    updates: Updates = Updates.FRESH
    batch: bool = False  # several records may share one request when catching up
    lease_end: datetime | None = None  # None: endless
    former_until: datetime | None = None  # how long a secret replaced by this one signs
    is_silent: bool = False  # stands above every record, and so receives none


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    id: SubscriptionId
    account: AccountId
    topic: str  # the URL the subscriber used; what it is always given back
    feed_id: FeedId
    callback: str
    secret: str
    algorithm: str
    format: Format
    updates: Updates
    batch: bool
    state: SubscriptionState
    from_position: Position  # receives records above this
    lease_end: datetime | None
    created_at: datetime
    exhausted: bool  # the retry schedule ran out: each new record is one probe
    ended_reason: str = ""
    former_secret: str = ""  # the one it had before, as long as that signs as well
    former_until: datetime | None = None
