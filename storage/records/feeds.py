"""Feeds: what is polled, how it answers, and what a fetch starts from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from protocols.model import Hints
from protocols.quick import quick_init
from storage.records.identities import FeedId
from storage.records.paces import Pace
from storage.records.pushes import Push
from storage.records.standings import Standing


class FeedState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    GONE = "gone"  # 410 confirmed: no longer polled
    DEAD = "dead"  # 404 for days: no longer polled
    REMOVED = "removed"  # kept 30 days for its return
    TRACK = "track"  # no feed but a track query: never polled, nor listed among feeds

    @property
    def is_stopped(self) -> bool:
        """Whether the hub itself gave it up; it returns when it answers again."""
        return self in (FeedState.GONE, FeedState.DEAD)


FEED_REMOVED = "the feed was removed"
"""Why the subscriptions of a removed feed end; what their subscribers are told."""


@quick_init
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


@quick_init
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
    validator: str = ""  # where that header wants subscriptions to be allowed
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
    is_resource: bool = False  # no feed: the whole of it, or a part, is what is told
    part_state: str = ""  # of that part, as it was last (hub.core.fragments)
    unlisted: bool = False  # all its entries are to be kept out of what many can find
    told_on: int = 0  # the day of the last document, counted from 1970-01-01
    told_of_day: int = 0  # new entries on it
    bytes_of_day: int = 0  # of them and of changed ones, as JSON
    waiting: int = 0  # more of both, for which that day had no room
    found_at: str = ""  # the last document's resource, if it is not the feed's own


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What is sent to a feed's own origin only; encrypted at rest."""

    username: str = ""
    password: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFeed:
    """``as_anybody``: it is the feed as anybody gets it, never one with credentials."""

    url: str
    private: bool = False
    as_anybody: bool = False
    section: str = ""
    credentials: Credentials | None = None
    title: str = ""  # until it has its own
    description: str = ""  # as well


class Subscribers(StrEnum):
    """Whose subscriptions to a feed."""

    ALL = "all"
    STRANGERS = "strangers"  # of the open hub
    OTHERS = "others"  # all but the operator's


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedChange:
    """None: as it is. Credentials that are empty: from now on it takes none.

    ``shuts_out``: whose subscriptions end with it; None: nobody's.
    """

    private: bool | None = None
    section: str | None = None
    credentials: Credentials | None = None
    shuts_out: Subscribers | None = None


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


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class DueFeed:
    id: FeedId
    url: str  # where the next request goes: fetch_url, or the feed's own
    next_fetch: datetime
    pace: Pace  # as of its last fetch


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenFeeds:
    """Feeds that are no more, and those that only some may see."""

    removed: frozenset[FeedId]
    private: frozenset[FeedId]


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class FetchTarget:
    """Everything a fetch of one feed starts from."""

    feed: StoredFeed
    credentials: Credentials | None
    seen: bytes  # packed seen-set (hub.core.seen), b"" before the first fetch
    keeps_body: bool  # some active subscription is sent it
    subscribers: int
    is_error_awaited: bool = False  # by who came when the log had it no more
    standing: Standing | None = None  # None before the first maintenance
    slices: bytes = b""  # packed by hub.core.remembered, b"" when nothing is
    inventory: bytes = b""  # packed by hub.core.inventory, b"" when there is none
    push: Push | None = None  # None where nobody pushes it
