"""The log: records, entries, their search terms, and what one fetch writes."""

from __future__ import annotations

from datetime import datetime
from enum import Enum, StrEnum, auto
from operator import attrgetter
from typing import TypeAlias

import msgspec

from protocols.model import Deletion, Entry, Feed, Status
from storage.records.events import OperationalEvent
from storage.records.feeds import (
    FeedHealth,
    FeedState,
    FeedStatistics,
    Polling,
    PushWrite,
    SiteWrite,
    StoredFeed,
    cold_values,
)
from storage.records.identities import BEFORE_ALL, EntryId, FeedId, Position
from storage.records.polls import Poll

# --- track queries ---


class TrackQuery(msgspec.Struct, frozen=True):
    """A query as somebody wrote it, and the feed that stands for it."""

    feed_id: FeedId
    query: str


class MatchWrite(msgspec.Struct, frozen=True):
    """New entries of the commit, by key, that one query matches: they become one
    record."""

    feed_id: FeedId
    keys: tuple[str, ...]


class Matched(msgspec.Struct, frozen=True, kw_only=True):
    """The result of matching a commit's new entries against the track queries.

    ``version`` is the version of the queries they were matched against.
    """

    version: int
    matches: tuple[MatchWrite, ...] = ()


class TrackMatch(msgspec.Struct, frozen=True):
    """An entry that a query found, which belongs to the feed ``source``."""

    entry_id: EntryId
    source: FeedId
    at: datetime


class SourceFeed(msgspec.Struct, frozen=True):
    """The feed that an entry found by a track query comes from.

    ``head`` is the packed `protocols.model.Feed` of its last document.
    """

    url: str
    head: bytes | None


# --- the log ---


class RecordKind(StrEnum):
    BASELINE = "baseline"  # entries of a first fetch: logged, sent to nobody
    ENTRIES = "entries"
    UPDATED = "updated"
    DELETED = "deleted"
    ERROR = "error"
    RECOVERED = "recovered"
    CONTENT = "content"
    EVENT = "event"  # of the hub itself: see `OperationalEvent`


class Cursor(msgspec.Struct, frozen=True):
    """A place in the log; `str` gives the ``epoch-position`` form."""

    epoch: str
    position: Position

    def __str__(self) -> str:
        return f"{self.epoch}-{self.position}"


class EntryRef(msgspec.Struct, frozen=True):
    """An entry as a record names it. ``fresh``: its own date was below 3 min ago."""

    entry_id: EntryId
    revision: int
    fresh: bool = True


class Record(msgspec.Struct, frozen=True, kw_only=True):
    position: Position
    at: datetime
    feed_id: FeedId
    kind: RecordKind
    status: Status
    entries: tuple[EntryRef, ...] = ()
    is_superseded: bool = False  # a later record of its commit brings the document
    source: FeedId | None = None  # for a track query: the feed its entries are from
    event: OperationalEvent | None = None  # in topics of events only


class FeedTrail(msgspec.Struct, frozen=True, kw_only=True):
    """What a feed has left in the log up to a position; baselines do not count.

    0 stands for none. ``last`` is its last record there, kept or trimmed; records up
    to ``trimmed`` are gone.
    """

    last: Position
    trimmed: Position


class StoredEntry(msgspec.Struct, frozen=True, kw_only=True):
    id: EntryId
    feed_id: FeedId
    key: str
    revision: int
    deleted: bool
    body: bytes  # packed protocols.model.Entry
    unlisted: bool = False  # the entry is kept out of public lists and search


class StoredBody(msgspec.Struct, frozen=True, kw_only=True):
    """A topic's latest document, unparsed; ``body`` is packed.

    ``position`` is that of the last record that tells of its news; storage sets it.
    """

    content_type: str
    body: bytes
    position: Position = BEFORE_ALL


class DocumentWrite(msgspec.Struct, frozen=True, kw_only=True):
    """A topic's document, unparsed; the engine packs its bytes."""

    content_type: str
    body: bytes


class RecordWrite(msgspec.Struct, frozen=True, kw_only=True):
    """A record to append; ``entries`` are (key, fresh) of this feed."""

    kind: RecordKind
    status: Status
    entries: tuple[tuple[str, bool], ...] = ()


class FetchCommit(msgspec.Struct, frozen=True, kw_only=True):
    """All that one fetch changes, applied in one transaction or not at all.

    ``None`` means unchanged. Entries, head and documents are values, which the engine
    packs. An entry of an unknown key is inserted at revision 1; one of a known key is
    replaced at its next revision. Deletions come before entries; a deleted entry keeps
    its last body, and one of an unknown key is stored with its id.

    A commit that is quiet and changes none of the cold fields leaves the feed's version
    as it is; any other raises it. So the version alone tells which cold fields are
    stored.

    Records are appended in the given order (recovered, deleted, updated, entries) and,
    unless ``BASELINE``, each gets a fan-out row. The records of track queries follow;
    ``matched`` None: its entries are not for tracking.
    """

    feed_id: FeedId
    at: datetime
    next_fetch: datetime
    polling: Polling
    version: int | None = None  # of the target it was decided on; None: of any
    former: Polling | None = None  # that target's polling state; None: unknown
    state: FeedState | None = None
    condition: FeedHealth | None = None  # the feed's condition from now on
    title: str | None = None
    format: str | None = None
    head: Feed | None = None
    seen: bytes | None = None
    slices: bytes | None = None
    inventory: bytes | None = None
    raw: DocumentWrite | None = None  # the last valid document, if it is to be kept
    site: SiteWrite | None = None  # for a source that is read in steps
    entries: tuple[Entry, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    records: tuple[RecordWrite, ...] = ()
    body: DocumentWrite | None = None
    matched: Matched | None = None
    push: PushWrite | None = None
    poll: Poll | None = None  # for the feed's history; None: no poll has ended with it
    events: tuple[OperationalEvent, ...] = ()  # queued if anybody subscribes to events

    @property
    def is_quiet(self) -> bool:
        """Whether the commit changes nothing but the polling state and its schedule."""
        return bool(_found(self) == _NOTHING)

    @property
    def changes_cold(self) -> bool:
        """Whether fields of the polling state outside `HOT_FIELDS` may have changed."""
        former = self.former
        return former is None or cold_values(self.polling) != cold_values(former)


_changes = [
    each
    for each in msgspec.structs.fields(FetchCommit)
    if not each.required and each.name not in ("version", "former", "poll")
]
_found = attrgetter(*(each.name for each in _changes))
_NOTHING = tuple(each.default for each in _changes)


class Stored(msgspec.Struct, frozen=True):
    """The positions of a commit's records, including those of track queries, and the
    version of its feed from then on."""

    positions: tuple[Position, ...]
    version: int


class NotStored(Enum):
    """Why nothing of a commit was applied."""

    GONE = auto()  # the feed was removed
    STALE = auto()  # the feed has changed since the decision: decide anew


CommitOutcome: TypeAlias = Stored | NotStored


# --- entries ---


class EntryPlace(msgspec.Struct, frozen=True):
    """Where an entry stands among others, newest first.

    ``at``: its own date, or when it was first stored. At the same moment the lower id
    comes first, because a document lists its newest entry first.
    """

    at: datetime
    id: EntryId


class EntrySource(msgspec.Struct, frozen=True, kw_only=True):
    """The feed that entries come from, with the packed head of its last document."""

    feed: StoredFeed
    head: bytes | None
    statistics: FeedStatistics | None = None  # None before the first maintenance


# --- search ---


class SearchDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The words and places by which an entry is found.

    ``words`` are separated by single blanks; ``places`` are names without blanks.
    """

    entry_id: EntryId
    words: str
    places: tuple[str, ...]


class SearchState(msgspec.Struct, frozen=True, kw_only=True):
    """What the index of words covers: entries dated within so many ``days``; 0: there
    is no index. ``position``: up to where it has read the log. Entries below ``unread``
    are still to be read; ``first`` and ``last`` are the lowest and highest entry ids.
    """

    days: float
    position: Position
    unread: EntryId
    first: EntryId
    last: EntryId

    @property
    def share_read(self) -> float:
        """The approximate share of entries that are in the index."""
        if not self.unread:
            return 1.0
        return max(0.0, 1 - (self.unread - self.first) / (self.last + 1 - self.first))


class Phrase(msgspec.Struct, frozen=True):
    """Matches these words in a row."""

    words: tuple[str, ...]


class PlaceTerm(msgspec.Struct, frozen=True):
    name: str


class Both(msgspec.Struct, frozen=True):
    """Matches if every member matches."""

    members: tuple[Term, ...]


class Either(msgspec.Struct, frozen=True):
    """Matches if at least one member matches."""

    members: tuple[Term, ...]


Term: TypeAlias = Phrase | PlaceTerm | Both | Either


class Matches(msgspec.Struct, frozen=True, kw_only=True):
    """A page of matches, newest first; ``places``: of each entry its own, below which
    the next one is; ``dates``: the second of each, by which they are in order;
    ``next``: where the next page begins, None at the end.

    A page may be empty without being the last: what the viewer must not see is left
    out.
    """

    entries: tuple[StoredEntry, ...]
    places: tuple[int, ...]
    dates: tuple[datetime, ...]
    next: int | None
