"""The log: records, entries and what they are found by, and what one fetch writes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from protocols.model import Deletion, Entry, Feed, Status
from protocols.quick import quick_init
from storage.records.feeds import (
    FeedState,
    Polling,
    PushWrite,
    SiteWrite,
    Standing,
    StoredFeed,
)
from storage.records.identities import BEFORE_ALL, EntryId, FeedId, Position


@dataclass(frozen=True, slots=True)
class TrackQuery:
    """A query as somebody wrote it, and the feed that stands for it."""

    feed_id: FeedId
    query: str


@dataclass(frozen=True, slots=True)
class MatchWrite:
    """New entries of the commit, by key, that a query matches: one record of it."""

    feed_id: FeedId
    keys: tuple[str, ...]


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """What came of holding a commit's new entries against the track queries.

    ``version`` is that of the queries they were held against.
    """

    version: int
    matches: tuple[MatchWrite, ...] = ()


@dataclass(frozen=True, slots=True)
class TrackMatch:
    """An entry that a query found, of the feed ``source``."""

    entry_id: EntryId
    source: FeedId
    at: datetime


@dataclass(frozen=True, slots=True)
class SourceFeed:
    """Where an entry that a track query found comes from.

    ``head`` is the packed `protocols.model.Feed` of its last document.
    """

    url: str
    head: bytes | None


class RecordKind(StrEnum):
    BASELINE = "baseline"  # entries of a first fetch: logged, sent to nobody
    ENTRIES = "entries"
    UPDATED = "updated"
    DELETED = "deleted"
    ERROR = "error"
    RECOVERED = "recovered"
    CONTENT = "content"


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in the log; `str` gives the ``epoch-position`` form."""

    epoch: str
    position: Position

    def __str__(self) -> str:
        return f"{self.epoch}-{self.position}"


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
    source: FeedId | None = None  # of a track query's: where entries and status are of


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
    unlisted: bool = False  # as the entry is: to be kept out of what many can find


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBody:
    """A topic's latest document, as it came; ``body`` is packed.

    ``position`` is that of the last record that is news of it; storage sets it.
    """

    content_type: str
    body: bytes
    position: Position = BEFORE_ALL


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentWrite:
    """A topic's document as it came; the engine packs its bytes."""

    content_type: str
    body: bytes


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

    ``None`` means unchanged. Entries, head and documents are values, which the engine
    packs. An entry of an unknown key is inserted at revision 1, a known one replaced at
    its next revision. Deletions come before entries; they keep the last body, and one
    of an unknown key is stored with its id.

    Records are appended in the given order (recovered, deleted, updated, entries) and,
    unless ``BASELINE``, each gets a fan-out row. Then follow those of track queries;
    ``matched`` None: the entries are none for tracking.
    """

    feed_id: FeedId
    at: datetime
    next_fetch: datetime
    polling: Polling
    state: FeedState | None = None
    title: str | None = None
    format: str | None = None
    head: Feed | None = None
    seen: bytes | None = None
    slices: bytes | None = None
    inventory: bytes | None = None
    raw: DocumentWrite | None = None  # the last valid document, where one is kept
    site: SiteWrite | None = None  # of a source that is read in steps
    entries: tuple[Entry, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    records: tuple[RecordWrite, ...] = ()
    body: DocumentWrite | None = None
    matched: Matched | None = None
    push: PushWrite | None = None


@dataclass(frozen=True, slots=True)
class EntryPlace:
    """Where an entry stands among others, newest first.

    ``at``: its own date, or when it was first stored. Of the same moment the lower id
    comes first: a document has its newest entry first.
    """

    at: datetime
    id: EntryId


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySource:
    """The feed that entries come from, with the packed head of its last document."""

    feed: StoredFeed
    head: bytes | None
    standing: Standing | None = None  # None before the first maintenance


# --- search ---


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchDocument:
    """What an entry is found by.

    ``words`` stand between single blanks; ``places`` are names without blanks.
    """

    entry_id: EntryId
    words: str
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words in a row."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    name: str


@dataclass(frozen=True, slots=True)
class Both:
    """Every member is there."""

    members: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """At least one member is there."""

    members: tuple[Term, ...]


Term: TypeAlias = Phrase | Place | Both | Either


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """A page of matches, newest first; ``next``: what to go on with, None at the end.

    A page may be empty and not the last one: what must not be seen is left out.
    """

    entries: tuple[StoredEntry, ...]
    next: int | None
