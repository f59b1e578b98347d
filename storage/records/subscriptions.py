"""Subscriptions, verifications, accounts and tokens."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from storage.records.feeds import FeedStatistics, StoredFeed
from storage.records.identities import (
    AccountId,
    FeedId,
    Position,
    SubscriptionId,
    TokenId,
)

# --- subscriptions ---


class SubscriptionState(StrEnum):
    PENDING = "pending"  # not yet verified: receives nothing
    ACTIVE = "active"
    ENDING = "ending"  # ended; the subscriber is still to be told by a denial
    ENDED = "ended"


class SubscriptionHealth(StrEnum):
    """The condition of a subscription in one word."""

    OK = "ok"
    SLOW = "slow"  # it is behind, and is sent what it lacks
    FAILING = "failing"  # its callback has not answered with a 2xx
    PAUSED = "paused"
    PENDING = "pending"  # not yet verified
    GONE = "gone"  # ended: its callback answered 410
    ENDED = "ended"


ENDED_SUBSCRIPTIONS = (SubscriptionHealth.GONE, SubscriptionHealth.ENDED)
"""The healths of subscriptions that have ended."""
LISTED_SUBSCRIPTIONS = tuple(
    each for each in SubscriptionHealth if each not in ENDED_SUBSCRIPTIONS
)
"""The healths of subscriptions that have not ended."""


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


class NewSubscription(msgspec.Struct, frozen=True, kw_only=True):
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
    former_until: datetime | None = None  # until when the secret it replaces also signs
    is_silent: bool = False  # stands above every record, and so receives none


class Subscription(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    id: SubscriptionId
    account: AccountId
    topic: str  # as the subscriber spelled it; always sent back like that
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
    former_secret: str = ""  # the secret it had before, while that signs as well
    former_until: datetime | None = None


# --- lists ---


class BoundComparison(StrEnum):
    EQUAL = "="
    ABOVE = ">"
    FROM = ">="
    BELOW = "<"
    UP_TO = "<="


class Bound(msgspec.Struct, frozen=True):
    """A comparison with a number of a feed's status: ``> 0.5``."""

    comparison: BoundComparison
    number: float


class ListingSearch(msgspec.Struct, frozen=True, kw_only=True):
    """All conditions that are set must hold; empty texts and None are not set.

    Hosts are in lower case. In ``callback_like``, ``%`` stands for any text. An index
    finds what formats, topics, callbacks and hosts select; the rest is looked for among
    the account's subscriptions.
    """

    format: Format | None = None
    topic: str = ""  # in any spelling
    topic_contains: str = ""
    topic_host: str = ""
    callback: str = ""
    callback_contains: str = ""
    callback_host: str = ""
    callback_like: str = ""
    velocity: Bound | None = None
    popularity: Bound | None = None
    bozo_rank: Bound | None = None
    porn_rank: Bound | None = None


class ListedSubscription(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription with its feed."""

    subscription: Subscription
    feed: StoredFeed
    statistics: FeedStatistics | None = None  # None before the first maintenance


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """A page, oldest first, and the ``total`` of subscriptions found."""

    items: tuple[ListedSubscription, ...]
    total: int


# --- verification ---


class VerificationMode(StrEnum):
    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"


class VerificationState(StrEnum):
    PENDING = "pending"  # the callback is still to be asked
    VERIFIED = "verified"
    FAILED = "failed"  # the callback did not confirm: nothing was changed
    DENIED = "denied"  # the hub refuses the topic, and has told the callback
    REPLACED = "replaced"  # the same was asked for again before it was verified
    NEEDLESS = "needless"  # nothing was subscribed that could be unsubscribed


class AccountRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What an account may ask for beyond what anybody may.

    ``format`` None: Atom for a feed, anything else unparsed. ``shown``: further
    parameters of its request, and ``headers`` its headers, for the topic's publisher;
    no secrets.
    """

    format: Format | None = None
    has_digest: bool = False
    shown: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()


class NewVerification(msgspec.Struct, frozen=True, kw_only=True):
    """A request that its callback must confirm before it takes effect.

    ``account_request`` None: it was sent to the open hub.
    """

    account: AccountId
    mode: VerificationMode
    topic: str  # topic and callback as the subscriber spells them
    callback: str
    token: str  # opens the diagnostics of this request; only its hash is stored
    lease_seconds: int = 0
    secret: str = ""
    algorithm: str = "sha256"
    format: Format = Format.AS_IS
    verify_token: str = ""
    account_request: AccountRequest | None = None
    asker: str = ""  # an address or an account, kept while pending; "": nobody


class VerificationTry(msgspec.Struct, frozen=True, kw_only=True):
    """The last try at a verification. ``status`` 0: the callback did not answer."""

    at: datetime
    status: int = 0
    excerpt: str = ""  # of the answer
    reason: str = ""  # what was wrong, for people


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """A request, pending or done, and its result."""

    id: int
    account: AccountId
    mode: VerificationMode
    topic: str
    callback: str
    lease_seconds: int
    secret: str  # "" once it is done
    algorithm: str
    format: Format
    verify_token: str
    state: VerificationState
    created_at: datetime
    attempts: int
    due: datetime | None  # the next try; None when it is done
    last: VerificationTry | None
    account_request: AccountRequest | None = None
    lease_id: int = 0  # under which it is held; 0: it was only read


# --- accounts and tokens ---


class TokenScope(StrEnum):
    """What a token lets its holder do; each scope is granted separately."""

    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    LIST = "list"
    RETRIEVE = "retrieve"  # read topics: live, and what there was
    ADMIN = "admin"  # administer the hub, and act for every account


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """The owner of subscriptions."""

    id: AccountId
    name: str


class AccountSummary(msgspec.Struct, frozen=True, kw_only=True):
    """An account: how many of its ``tokens`` are valid, all that these may do, and when
    one was last used. ``subscriptions``: how many are in each state; empty states are
    left out."""

    account: Account
    tokens: int
    scopes: frozenset[TokenScope]
    used_at: datetime | None
    subscriptions: Mapping[SubscriptionHealth, int]


class TokenFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which tokens are wanted; None: any. ``scope``: tokens that are not revoked and
    may do that, by this scope or by `admin`."""

    account: AccountId | None = None
    scope: TokenScope | None = None


EVERY_TOKEN: Final = TokenFilter()


class NewToken(msgspec.Struct, frozen=True, kw_only=True):
    account: str  # its name; an unknown one becomes a new account
    digest: bytes  # SHA-256 of the token, which itself is not stored
    scopes: frozenset[TokenScope]
    label: str = ""


class StoredToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token of an account for the API; the token itself is known only to its
    holder."""

    id: TokenId
    account: Account
    scopes: frozenset[TokenScope]
    label: str
    created_at: datetime
    used_at: datetime | None  # accurate to about an hour
    revoked_at: datetime | None
