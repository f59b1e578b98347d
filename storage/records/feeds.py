"""Feeds: how they are polled and answer, who pushes them, and sites' pages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from operator import attrgetter
from typing import Final

import msgspec

from protocols.model import Hints
from storage.records.identities import FeedId
from storage.records.polls import PollReason

_MILLISECOND = timedelta(milliseconds=1)

# --- pace ---

Pace = int
"""How often a feed is polled: the exponent of the largest power of two, in seconds,
within its period; 0 to `PACES` - 1.

A feed that is overdue by its own period has accumulated four times the waiting that a
poll is worth (waiting grows with the square of the time), whatever the period. So feeds
are ordered by how late they are in units of their periods. Within one pace that order
is the order of time, which an index provides.
"""

PACES = 22
"""The number of paces. The last covers all periods from 24 days on."""
UNKNOWN_PACE: Pace = 11
"""The pace of a feed that was never planned, as if it were polled hourly: a million new
feeds should neither hold up all others nor wait until those are done."""

PlaceByPace = Mapping[Pace, tuple[datetime, FeedId]]
"""How far due feeds have been read: the last feed of each pace; a pace that is not
named has not been read."""


def pace_of(period: float) -> Pace:
    """The pace of a period in seconds, which is 0 if none was planned yet."""
    if period <= 0:
        return UNKNOWN_PACE
    return min(max(int(period).bit_length() - 1, 0), PACES - 1)


def lateness(due: datetime, pace: Pace, now: datetime) -> float:
    """How late a feed is: milliseconds, divided by the power of two of its pace."""
    return (now - due) // _MILLISECOND / (1 << pace)


# --- maintenance ---


class FeedStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of one feed, as docs/reference/status.md defines them."""

    maintained_at: datetime
    popularity: float = 0.0
    porn_rank: float | None = None  # None without a list of words or without entries
    is_stale: bool = False


class FeedStatisticsWrite(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of a feed and what they are computed from: its ``site`` (host and path
    of its page, "" if it names none), and the ``places`` (likewise) that its entries
    link to."""

    feed_id: FeedId
    statistics: FeedStatistics
    site: str
    places: frozenset[str]
    due: datetime  # when the next maintenance is


# --- push ---


class PushWay(StrEnum):
    WEBSUB = "websub"
    CLOUD = "rsscloud"


class PushOffer(msgspec.Struct, frozen=True, kw_only=True):
    """Where a feed says that it can be had without polling.

    ``marks`` identify the feed's own documents: their id and addresses.
    """

    way: PushWay
    hub: str  # the URL to subscribe at
    topic: str  # the URL to subscribe to
    marks: tuple[str, ...] = ()


class PushRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How well a feed was pushed; it decides how rarely the feed is polled."""

    proofs: int = 0  # consecutive pushes of news that no poll had found
    needed: int = 2  # proofs after which the hub is believed
    brought: int = 0  # all pushes of news that no poll had found
    late: int = 0  # pushes of news that a poll had just found
    foreign: int = 0  # pushes of documents that are not the feed's
    missed: int = 0  # polls that found news that nobody had pushed
    missed_at: datetime | None = None  # when the last of these was, until it is judged
    pushed_at: datetime | None = None  # when its hub last pushed or announced anything


class Push(msgspec.Struct, frozen=True, kw_only=True):
    """What a fetch has to know of a feed's push. ``until``: the end of the subscription
    at the hub; ``hinted_at``: when the hub said that there is news, without sending it.
    """

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
    DELIVERED = "delivered"  # accepted requests to callbacks
    FORGED = "forged"  # not signed, or signed wrongly
    REJECTED = "rejected"  # too large, too many, or no longer wanted
    BROUGHT = "brought"  # news that was pushed before a poll found it
    LATE = "late"
    FOREIGN = "foreign"
    MISSED = "missed"  # news that polls found


class PushWrite(msgspec.Struct, frozen=True, kw_only=True):
    """What a fetch changes of a feed's push. ``is_turned``: its hub is to be asked
    anew. Hints up to ``heeded_until`` were taken up."""

    push: Push
    is_turned: bool = False
    heeded_until: datetime | None = None
    counted: tuple[PushCount, ...] = ()


class PushHub(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of all feeds' requests and pushes at one hub."""

    hub: str
    counts: tuple[tuple[PushCount, int], ...]


# --- feeds ---


class FeedState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    GONE = "gone"  # 410 confirmed: no longer polled
    DEAD = "dead"  # 404 for days: no longer polled
    REMOVED = "removed"  # kept for 30 days, in case it returns
    TRACK = "track"  # no feed but a track query: never polled, nor listed among feeds
    EVENTS = (
        "events"  # no feed but a topic of operational events: never polled, nor listed
    )

    @property
    def is_listed(self) -> bool:
        """Whether it is a feed that is not removed."""
        return self not in (FeedState.REMOVED, FeedState.TRACK, FeedState.EVENTS)

    @property
    def is_stopped(self) -> bool:
        """Whether the hub gave the feed up; it becomes active again once it answers."""
        return self in (FeedState.GONE, FeedState.DEAD)


class FeedHealth(StrEnum):
    """The condition of a feed in one word; for an active feed, the result of its last
    poll."""

    OK = "ok"
    PUSHED = "pushed"  # its hub pushes what is new: it is polled rarely
    SLOW = "slow"  # its server took long to answer
    FAILING = "failing"
    GONE = "gone"  # the hub gave it up: no longer polled
    PAUSED = "paused"
    REMOVED = "removed"
    TRACK = "track"  # no feed but a track query
    EVENTS = "events"  # no feed but a topic of operational events

    @classmethod
    def of(cls, state: FeedState, condition: FeedHealth) -> FeedHealth:
        """The health of a feed in that state whose last poll ended that way."""
        if state is FeedState.ACTIVE:
            return condition
        return cls.GONE if state.is_stopped else cls(state.value)


LISTED_HEALTH = tuple(
    each
    for each in FeedHealth
    if each not in (FeedHealth.REMOVED, FeedHealth.TRACK, FeedHealth.EVENTS)
)
"""The healths of feeds that are not removed."""

FEED_REMOVED = "the feed was removed"
"""Why the subscriptions of a removed feed end, as their subscribers are told."""


class Validators(msgspec.Struct, frozen=True, kw_only=True):
    """Conditional-request validators, byte for byte, with the one URL they came
    from."""

    url: str
    etag: str = ""
    last_modified: str = ""


class Redirect(msgspec.Struct, frozen=True, kw_only=True):
    """A permanent redirect that is observed before it is followed for good."""

    target: str
    sightings: int
    first_seen: datetime


class Posting(msgspec.Struct, frozen=True, kw_only=True):
    """When a feed has posted, compactly: the input of the forecast (`hub.core`)."""

    weight: float = 0.0  # new entries, each counting less with every day
    at: datetime | None = None  # when weight and burst were last decayed
    since: datetime | None = None  # when observation began
    burst: float = 0.0  # like ``weight``, but forgotten within hours
    habits: bytes = b""  # packed counts by hour, weekday and minute


class Polling(msgspec.Struct, frozen=True, kw_only=True):
    """All the poller knows of a feed.

    Engines store it in two parts: `HOT_FIELDS` are rewritten with every fetch, the rest
    only if it has changed.
    """

    period: float = 0.0  # seconds
    last_fetch: datetime | None = None
    last_success: datetime | None = None
    settling_since: datetime | None = None  # the first success, while the feed is new
    last_parse: datetime | None = None
    code: int | None = None  # last HTTP status; 0: unreachable; None: never fetched
    message: str = ""  # the status line for people: "Fetched (ring) 200 900 and …"
    error: str = ""  # why it fails now; "" if it does not
    failures: int = 0  # consecutive
    failing_since: datetime | None = None
    gone_sightings: int = 0  # consecutive 410
    missing_sightings: int = 0  # consecutive 404 and 410
    missing_since: datetime | None = None  # the first consecutive 404 or 410
    validators: Validators | None = None
    answers_304: bool = False  # the origin has honoured our validators
    body_hash: str = ""  # of the last body that was read, hex
    body_bytes: int = 0  # its length
    body_error: str = ""  # why that body is not a feed; "" when it is one
    unchanged: int = 0  # consecutive successes that changed nothing
    fetch_url: str = ""  # a believed permanent redirect; "": the feed's own URL
    redirect: Redirect | None = None
    retry_after: datetime | None = None  # no request before this
    fresh_until: datetime | None = None  # Cache-Control max-age or Expires
    hints: Hints = Hints()
    hubs: tuple[str, ...] = ()  # WebSub hubs that the last document's header named
    validator: str = ""  # the URL at which that header wants subscriptions checked
    posting: Posting = Posting()
    price: float = 0.0  # the price of a poll when the next was planned; 0: not yet
    entry_count: int = 0  # entries in the last document
    entries_since_maintenance: int = 0
    last_maintenance_at: datetime | None = None
    velocity: float = 0.0  # new entries a day
    subscribers: int = 0  # at the last fetch; more of them shorten the period
    bozo_rank: float = 0.0  # 0 to 1: how unusable its ids and dates are (docs)
    generated_ids: bool = False
    rekeyed: int = 0  # known entries under new ids, the last time that happened
    rekeyed_at: datetime | None = None
    gap_at: datetime | None = None  # when a poll knew no entry: some may be missed
    dropped: int = 0  # entries of the last document that were left out
    problems: tuple[str, ...] = ()  # of the last document, the first few
    is_resource: bool = False  # no feed: its whole document, or a part, is the news
    part_state: str = ""  # that part's last state (hub.core.news.part_changes)
    unlisted: bool = False  # all its entries are kept out of public lists and search
    told_on: int = 0  # the day of the last document, in days since 1970-01-01
    told_of_day: int = 0  # new entries on that day
    bytes_of_day: int = 0  # bytes of new and changed entries on that day, as JSON
    waiting: int = 0  # new and changed entries beyond that day's limit
    found_at: str = ""  # the last document's resource, if it is not the feed's own
    next_reason: PollReason = PollReason.PLANNED  # why the next poll is when it is
    delays: bytes = b""  # packed delays of new entries (hub.core.status.freshness)


HOT_FIELDS: Final = (
    "last_fetch",
    "last_success",
    "last_parse",
    "code",
    "message",
    "error",
    "failures",
    "failing_since",
    "gone_sightings",
    "missing_sightings",
    "missing_since",
    "unchanged",
    "period",
    "price",
    "velocity",
    "retry_after",
    "fresh_until",
    "next_reason",
    "subscribers",
)
"""The fields of a polling state that change even with a fetch that finds nothing
new."""

COLD_FIELDS: Final = tuple(
    each for each in Polling.__struct_fields__ if each not in HOT_FIELDS
)
cold_values: Final = attrgetter(*COLD_FIELDS)
hot_values: Final = attrgetter(*HOT_FIELDS)


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """Credentials that are sent to the feed's own origin only; encrypted at rest."""

    username: str = ""
    password: str = ""
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)


class NewFeed(msgspec.Struct, frozen=True, kw_only=True):
    """A feed to register. ``as_anybody``: the feed as anybody gets it, never one with
    credentials."""

    url: str
    private: bool = False
    as_anybody: bool = False
    category: str = ""
    credentials: Credentials | None = None
    title: str = ""  # used until the feed has its own
    description: str = ""  # likewise


class SubscriberGroup(StrEnum):
    """Which subscriptions to a feed are meant, by their owner."""

    ALL = "all"
    STRANGERS = "strangers"  # of the open hub
    OTHERS = "others"  # all but the operator's


class FeedChange(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of a feed; None: unchanged. Empty credentials: from now on it has none.

    ``url``: its new address; entries, subscriptions and what was learned of the feed
    stay, and what its requests depended on (such as validators) is dropped.
    ``own_period``: see `StoredFeed`. ``shuts_out``: whose subscriptions end with this
    change; None: nobody's.
    """

    url: str | None = None
    own_period: float | None = None
    private: bool | None = None
    category: str | None = None
    credentials: Credentials | None = None
    shuts_out: SubscriberGroup | None = None


class StoredFeed(msgspec.Struct, frozen=True, kw_only=True):
    id: FeedId
    url: str
    state: FeedState
    private: bool
    category: str
    title: str
    format: str  # protocols.model.FeedFormat, "" before the first parse
    next_fetch: datetime
    created_at: datetime
    removed_at: datetime | None
    polling: Polling
    own_period: float = 0.0  # the period that was set, in seconds; 0: as planned
    has_credentials: bool = False
    condition: FeedHealth = FeedHealth.OK  # how its last poll went
    # None: since it was added; not before it was resumed, unless it fails
    condition_since: datetime | None = None
    turned_at: datetime | None = None  # when its state last changed, except by removal

    @property
    def health(self) -> FeedHealth:
        return FeedHealth.of(self.state, self.condition)

    @property
    def health_since(self) -> datetime:
        if self.state is FeedState.ACTIVE:
            return self.condition_since or self.created_at
        if self.state is FeedState.REMOVED:
            return self.removed_at or self.created_at
        return self.turned_at or self.created_at


class DueFeed(msgspec.Struct, frozen=True, kw_only=True):
    id: FeedId
    url: str  # where the next request goes: fetch_url, or the feed's own
    next_fetch: datetime
    pace: Pace  # as of its last fetch


class HiddenFeeds(msgspec.Struct, frozen=True, kw_only=True):
    """Which feeds are removed, and which only some accounts may see."""

    removed: frozenset[FeedId]
    private: frozenset[FeedId]


class FetchTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a fetch of one feed starts from.

    Its ``version`` grows with each change of the feed that a decision depends on:
    changes by operators, and commits that find more than that nothing is new.
    """

    feed: StoredFeed
    credentials: Credentials | None
    seen: bytes  # packed seen-set (hub.core.news.seen_set), b"" before the first fetch
    keeps_body: bool  # an active subscription is sent the document
    subscribers: int
    is_error_awaited: bool = False  # by subscribers that found it gone from the log
    statistics: FeedStatistics | None = None  # None before the first maintenance
    slices: bytes = b""  # packed by hub.core.news.known_slices, b"" if there are none
    inventory: bytes = b""  # packed by hub.core.news.inventory, b"" when there is none
    push: Push | None = None  # None where nobody pushes it
    version: int = 0


# --- callbacks at hubs of others ---


class CallbackState(StrEnum):
    ASKED = "asked"  # the hub has yet to confirm it
    ACTIVE = "active"
    ENDING = "ending"  # the hub was asked to end it


class NewPushCallback(msgspec.Struct, frozen=True, kw_only=True):
    """A callback of this hub that another hub is about to be given."""

    feed_id: FeedId
    way: PushWay
    hub: str
    topic: str
    token: str  # the last part of its path; nobody can guess it
    secret: str
    asked_at: datetime
    until: datetime  # when the hub has to have confirmed it


class PushCallback(msgspec.Struct, frozen=True, kw_only=True):
    """A callback given to another hub. ``until`` is when its state ends: the wait for
    an answer, or the lease."""

    id: int
    feed_id: FeedId
    way: PushWay
    hub: str
    topic: str
    token: str
    secret: str
    state: CallbackState
    asked_at: datetime
    until: datetime


class FeedPush(msgspec.Struct, frozen=True, kw_only=True):
    """A feed's push, with everything its next step depends on."""

    feed_id: FeedId
    feed_state: FeedState
    has_credentials: bool
    push: Push
    callbacks: tuple[PushCallback, ...] = ()  # oldest first
    failures: int = 0  # requests in a row that led to no subscription
    asked_at: datetime | None = None  # the last request, to any hub
    retry_at: datetime | None = None  # no request before this
    error: str = ""  # why the last request failed; for people


# --- sites ---


class StoredSitePage(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored of one page of a site. Hashes have 63 bits."""

    key: str  # of the page's entry
    reference: str  # what its source calls it
    content: int  # hash of what its entry says
    stamp: int = 0  # what the source last said of it, as a number of its own
    walk: int = 0  # the last walk that listed it
    day: int = 0  # of its last change, in days since 1970
    changes: int = 0  # changes of its content on that day
    is_deleted: bool = False


class SiteWrite(msgspec.Struct, frozen=True, kw_only=True):
    """What one step of reading a site changes besides entries: its state, and pages.

    ``pages`` replace what was stored of them. Pages with the keys ``listed`` are
    unchanged, and were listed again in ``walk``.
    """

    state: bytes
    pages: tuple[StoredSitePage, ...] = ()
    listed: tuple[str, ...] = ()
    walk: int = 0


class SiteTally(msgspec.Struct, frozen=True, kw_only=True):
    """How many pages there are, and how many of them a walk has not listed."""

    pages: int
    unlisted: int
