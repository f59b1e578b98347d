"""What is stored: frozen values, the same for every engine.

Times are aware UTC datetimes with millisecond precision. Positions are dense and
increasing over the whole hub. Packed bodies (``bytes``) are made and read with
`storage.packing`, outside the writer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NewType

from protocols.model import Hints, Status
from protocols.quick import quick_init

AccountId = NewType("AccountId", int)
FeedId = NewType("FeedId", int)
EntryId = NewType("EntryId", int)
SubscriptionId = NewType("SubscriptionId", int)
Position = NewType("Position", int)

ANONYMOUS = AccountId(1)
"""The account of the open hub; it can never alter another account's subscription."""
OPERATOR = AccountId(2)
"""The account of the administrator's token."""


class FeedState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    GONE = "gone"  # 410 confirmed: no longer polled
    DEAD = "dead"  # 404 for days: no longer polled
    REMOVED = "removed"  # kept 30 days for its return

    @property
    def is_stopped(self) -> bool:
        """Whether the hub itself gave it up; it returns when it answers again."""
        return self in (FeedState.GONE, FeedState.DEAD)


FEED_REMOVED = "the feed was removed"
"""Why the subscriptions of a removed feed end; what their subscribers are told."""


class RecordKind(StrEnum):
    BASELINE = "baseline"  # entries of a first fetch: logged, sent to nobody
    ENTRIES = "entries"
    UPDATED = "updated"
    DELETED = "deleted"
    ERROR = "error"
    RECOVERED = "recovered"
    CONTENT = "content"


class SubscriptionState(StrEnum):
    PENDING = "pending"  # not yet verified: receives nothing
    ACTIVE = "active"
    ENDING = "ending"  # ended; the subscriber is still to be told by a denial
    ENDED = "ended"


class Format(StrEnum):
    JSON = "json"
    ATOM = "atom"
    AS_IS = "as-is"


class Updates(StrEnum):
    """Which ``updated`` and ``deleted`` records a subscription asks for."""

    NONE = "none"
    FRESH = "fresh"  # only entries whose own date was under 3 minutes old
    ALL = "all"  # every update, and deletions


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in the log; `str` gives the ``epoch-position`` form."""

    epoch: str
    position: Position

    def __str__(self) -> str:
        return f"{self.epoch}-{self.position}"


# --- feeds ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Validators:
    """Conditional-request validators, byte for byte, of the one URL they came from."""

    url: str
    etag: str = ""
    last_modified: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """A permanent redirect that is being watched before it is believed."""

    target: str
    sightings: int
    first_seen: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """When a feed has posted, compactly: the input of the forecast (`hub.core`)."""

    weight: float = 0.0  # new entries, each counting less with every day
    at: datetime | None = None  # when weight and burst were last decayed
    since: datetime | None = None  # when observation began
    burst: float = 0.0  # as weight, but forgotten within hours
    habits: bytes = b""  # packed counts by hour, weekday and minute


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Polling:
    """All the poller knows of a feed; rewritten whole with every fetch."""

    period: float = 0.0  # seconds
    last_fetch: datetime | None = None
    last_success: datetime | None = None
    last_parse: datetime | None = None
    code: int | None = None  # last HTTP status; 0: unreachable; None: never fetched
    message: str = ""  # the status line for people: "Fetched (ring) 200 900 and …"
    error: str = ""  # the reason of the current trouble; "" when there is none
    failures: int = 0  # consecutive
    failing_since: datetime | None = None
    gone_sightings: int = 0  # consecutive 410
    missing_sightings: int = 0  # consecutive 404 and 410
    missing_since: datetime | None = None  # the first of those
    validators: Validators | None = None
    answers_304: bool = False  # the origin has honoured our validators
    body_hash: str = ""  # of the last body that was read, hex
    body_error: str = ""  # why that body is not a feed; "" when it is one
    unchanged: int = 0  # consecutive successes that changed nothing
    fetch_url: str = ""  # a believed permanent redirect; "": the feed's own URL
    redirect: Redirect | None = None
    retry_after: datetime | None = None  # no request before this
    fresh_until: datetime | None = None  # Cache-Control max-age or Expires
    hints: Hints = field(default_factory=Hints)
    hubs: tuple[str, ...] = ()  # WebSub hubs that the last document's header named
    posting: Posting = field(default_factory=Posting)
    price: float = 0.0  # of a poll, when the next was planned; 0: not planned yet
    entry_count: int = 0  # entries in the last document
    entries_since_maintenance: int = 0
    last_maintenance_at: datetime | None = None
    velocity: float = 0.0  # new entries a day
    subscribers: int = 0  # at the last fetch; they weigh the period
    bozo_rank: float = 0.0  # 0 to 1: how badly its ids and dates serve (docs)
    generated_ids: bool = False
    rekeyed: int = 0  # known entries that came under other ids, the last time any did
    rekeyed_at: datetime | None = None
    gap_at: datetime | None = None  # when no entry was known: some may have been missed
    dropped: int = 0  # entries of the last document that were left out
    problems: tuple[str, ...] = ()  # of the last document, the first few
    found_at: str = ""  # the last document's resource, if it is not the feed's own


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What is sent to a feed's own origin only; encrypted at rest."""

    username: str = ""
    password: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFeed:
    url: str
    private: bool = False
    section: str = ""
    credentials: Credentials | None = None


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFeed:
    id: FeedId
    url: str
    state: FeedState
    private: bool
    section: str
    title: str
    format: str  # protocols.model.FeedFormat, "" before the first parse
    next_fetch: datetime
    created_at: datetime
    removed_at: datetime | None
    polling: Polling
    has_credentials: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DueFeed:
    id: FeedId
    url: str  # where the next request goes: fetch_url, or the feed's own
    next_fetch: datetime


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenFeeds:
    """Feeds that are no more, and those that only some may see."""

    removed: frozenset[FeedId]
    private: frozenset[FeedId]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchTarget:
    """Everything a fetch of one feed starts from."""

    feed: StoredFeed
    credentials: Credentials | None
    seen: bytes  # packed seen-set (hub.core.seen), b"" before the first fetch
    keeps_body: bool  # some active subscription is as-is
    subscribers: int
    slices: bytes = b""  # packed by hub.core.remembered, b"" when nothing is


# --- the log -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EntryRef:
    """An entry as a record names it; ``fresh``: its own date was under 3 min old."""

    entry_id: EntryId
    revision: int
    fresh: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    position: Position
    at: datetime
    feed_id: FeedId
    kind: RecordKind
    status: Status
    entries: tuple[EntryRef, ...] = ()
    is_superseded: bool = False  # a later one of its commit brings the document


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedTrail:
    """What a feed has left in the log up to a position; baselines do not count.

    0 stands for none. ``last`` is its last record there, kept or trimmed; records up
    to ``trimmed`` are gone.
    """

    last: Position
    trimmed: Position


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEntry:
    id: EntryId
    feed_id: FeedId
    key: str
    revision: int
    deleted: bool
    body: bytes  # packed protocols.model.Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBody:
    """A topic's latest document, as it came; ``body`` is packed.

    ``position`` is that of the last record that is news of it; storage sets it.
    """

    content_type: str
    body: bytes
    position: Position = Position(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryWrite:
    """New state of one entry: an unknown key is inserted at revision 1, a known one
    replaced at its next revision. A deletion keeps the last body (``b""`` here)."""

    key: str
    body: bytes
    published: datetime | None = None
    deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordWrite:
    """A record to append; ``entries`` are (key, fresh) of this feed."""

    kind: RecordKind
    status: Status
    entries: tuple[tuple[str, bool], ...] = ()


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class FetchCommit:
    """All that one fetch changes, applied in one transaction or not at all.

    ``None`` means unchanged. Records are appended in the given order (recovered,
    deleted, updated, entries) and, unless ``BASELINE``, each gets a fan-out row.
    """

    feed_id: FeedId
    at: datetime
    next_fetch: datetime
    polling: Polling
    state: FeedState | None = None
    title: str | None = None
    format: str | None = None
    head: bytes | None = None  # packed protocols.model.Feed
    seen: bytes | None = None
    slices: bytes | None = None
    entries: tuple[EntryWrite, ...] = ()
    records: tuple[RecordWrite, ...] = ()
    body: StoredBody | None = None


# --- subscriptions and delivery --------------------------------------------------


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


# --- tokens ----------------------------------------------------------------------

TokenId = NewType("TokenId", int)


class Right(StrEnum):
    """What a token lets its holder do; each is given by itself."""

    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    LIST = "list"
    RETRIEVE = "retrieve"  # read topics: live, and what there was
    ADMIN = "admin"  # administer the hub, and act for every account


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who subscriptions belong to."""

    id: AccountId
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    account: str  # its name; an unknown one becomes a new account
    digest: bytes  # SHA-256 of the token, which itself is not stored
    rights: frozenset[Right]
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What opens the API for an account; the token itself is known to its holder."""

    id: TokenId
    account: Account
    rights: frozenset[Right]
    label: str
    created_at: datetime
    used_at: datetime | None  # to the hour or so
    revoked_at: datetime | None


# --- verification of intent --------------------------------------------------------


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


@dataclass(frozen=True, slots=True, kw_only=True)
class NewVerification:
    """A request to the open hub that its callback must confirm before it counts."""

    account: AccountId
    mode: VerificationMode
    topic: str  # as the subscriber spells it, and so the callback
    callback: str
    token: str  # opens the diagnostics of this request; only its hash is stored
    lease_seconds: int = 0
    secret: str = ""
    algorithm: str = "sha256"
    format: Format = Format.AS_IS
    verify_token: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationTry:
    """The last that was done for it. ``status`` 0: no answer of the callback."""

    at: datetime
    status: int = 0
    excerpt: str = ""  # of the answer
    reason: str = ""  # what was wrong, for people


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """A request, pending or done, with what became of it."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedChunk:
    """Up to 500 subscriptions that one record is to be sent to, under a lease.

    ``pending`` pairs each index of the chunk that is not yet acknowledged with its
    subscription, in id order.
    """

    id: int
    lease_id: int
    record: Record
    pending: tuple[tuple[int, Subscription], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """The one open catch-up of a subscription that did not answer in time.

    It delivers the records above ``position`` in order, except those in
    ``(skip_after, skip_to]``, which were delivered before (a replayed dead range).
    """

    subscription: Subscription
    position: Position
    attempts: int  # tried and failed at the record after ``position``
    next_try: datetime
    failing_since: datetime
    last_status: int  # 0: no answer
    last_error: str
    skip_after: Position | None = None
    skip_to: Position | None = None
    missed: tuple[Position, Position] | None = (
        None  # trimmed; told with the next request
    )
    lease_id: int = 0  # 0: nobody's
    tried_to: Position | None = None  # where the request ended that is to be repeated


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadRange:
    """Records ``first``..``last`` that a subscription did not get, and why."""

    id: int
    subscription_id: SubscriptionId
    topic: str
    callback: str
    first: Position
    last: Position
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One request to a callback. ``status`` 0: no answer, then ``error`` says why."""

    subscription_id: SubscriptionId
    position: Position
    at: datetime
    status: int
    milliseconds: int
    error: str = ""


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkOutcome:
    """The chunk's member ``index`` needs nothing more from this chunk.

    It got a 2xx, or is owned by a straggler, a dead range or its ending that is
    part of the same flush. ``status`` and ``milliseconds`` are of the attempt; both
    0 if none was made.
    """

    chunk_id: int
    lease_id: int
    index: int
    status: int
    milliseconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StragglerOpened:
    """From chunk delivery to catch-up. With a lease: its attempt is still running."""

    subscription_id: SubscriptionId
    position: Position  # the one before the record that was not delivered
    attempts: int
    next_try: datetime
    failing_since: datetime
    last_status: int = 0
    last_error: str = ""
    lease_id: int = 0
    tried_to: Position | None = None  # see `Straggler`


@dataclass(frozen=True, slots=True, kw_only=True)
class StragglerMoved:
    """An outcome for a leased straggler; ignored unless the lease is still ours.

    ``position`` is where it now stands. ``release`` gives the lease up (next try at
    ``next_try``); otherwise the lease goes on. ``finished`` asks to close it: done
    only if no record of its feed that the subscription would get lies above
    ``position``, and then ``from_position`` becomes ``position``.
    """

    subscription_id: SubscriptionId
    lease_id: int
    position: Position
    attempts: int
    next_try: datetime
    last_status: int
    last_error: str = ""
    release: bool = False
    finished: bool = False
    tried_to: Position | None = None  # see `Straggler`


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp:
    """Records up to ``last`` go to a dead range (extending an adjoining one), the
    straggler, if any, is closed with ``from_position`` = ``last``, and the
    subscription is marked exhausted. ``lease_id`` 0: from a chunk, no straggler."""

    subscription_id: SubscriptionId
    lease_id: int
    first: Position
    last: Position
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFlush:
    """What happened to deliveries since the last flush; applied in one transaction."""

    at: datetime
    outcomes: tuple[ChunkOutcome, ...] = ()
    opened: tuple[StragglerOpened, ...] = ()
    moved: tuple[StragglerMoved, ...] = ()
    given_up: tuple[GivenUp, ...] = ()
    ended: tuple[tuple[SubscriptionId, str], ...] = ()  # 410: not told, it knows
    recovered: tuple[SubscriptionId, ...] = ()  # no longer exhausted
    advanced: tuple[tuple[SubscriptionId, Position], ...] = ()  # have all up to there
    attempts: tuple[Attempt, ...] = ()  # failures and catch-ups; chunk 2xx are kept
    # with the chunk's history


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushed:
    """``unfinished``: stragglers that asked to close but have newer records; they keep
    their lease. ``lost``: subscriptions whose lease was no longer ours."""

    unfinished: frozenset[SubscriptionId] = frozenset()
    lost: frozenset[SubscriptionId] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Counts for health and metrics."""

    feeds: int
    subscriptions: int
    fanouts: int
    chunks: int
    stragglers: int
    dead: int
    oldest_due: datetime | None  # the earliest ``next_fetch`` of an active feed
    oldest_undelivered: datetime | None = None  # time of a record with first
    # deliveries left


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How much of the log is kept. Soft limits stop at what a straggler or an
    unfinished fan-out still needs; hard limits do not stop at stragglers, whose
    records then go to a dead range with the reason ``trimmed``."""

    soft_age: float  # seconds
    soft_count: int
    hard_age: float
    hard_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseStatus:
    engine: str
    location: str
    version: int  # of the schema in the file
    latest: int  # of the schema this program knows
    epoch: str
    head: Position
    size_bytes: int
