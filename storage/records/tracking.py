"""Track queries: feeds whose records name entries of other feeds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from protocols.quick import quick_init
from storage.records.identities import EntryId, FeedId


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
