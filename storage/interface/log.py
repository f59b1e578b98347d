"""The log: one transaction in, many readers out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from storage.records import (
    Cursor,
    EntryId,
    FeedId,
    FeedTrail,
    FetchCommit,
    Position,
    Record,
    Retention,
    SourceFeed,
    StoredBody,
    StoredEntry,
)


class LogStore(Protocol):
    """The log: one transaction in, many readers out."""

    async def commit(self, fetch: FetchCommit) -> tuple[Position, ...] | None:
        """Apply what a fetch found; the positions of its records.

        None, and nothing applied, if the feed was removed meanwhile. Raises
        `DocumentWanted`, with nothing applied, if there is news without a body and an
        as-is subscription to send it to; and `QueriesWanted` if track queries came
        that its entries were not held against. Matches of queries that are gone are
        left out, and all of them if the feed has become private.
        """
        ...

    async def head(self) -> Cursor: ...

    async def wait(self, after: Position, seconds: float) -> Position:
        """Return the head when it is above ``after``, or after so many seconds."""
        ...

    async def records(
        self, *, after: Position, limit: int, feed_id: FeedId | None = None
    ) -> list[Record]: ...

    async def trail(self, feed_id: FeedId, through: Position) -> FeedTrail:
        """What a feed has left in the log, up to and with a position."""
        ...

    async def entries(self, ids: Sequence[EntryId]) -> list[StoredEntry]:
        """Current state, in the order asked for; unknown ids are left out."""
        ...

    async def latest_entries(self, feed_id: FeedId, limit: int) -> list[StoredEntry]:
        """Newest first, deleted ones left out.

        Of a track query, those it matched, as far back as the log and of feeds that
        are public now; the last match is the newest.
        """
        ...

    async def feed_head(self, feed_id: FeedId) -> bytes | None:
        """Packed `protocols.model.Feed` of the last document."""
        ...

    async def source(
        self, feed_id: FeedId, query: FeedId | None = None
    ) -> SourceFeed | None:
        """Where entries come from that are shown under a track query.

        None of a feed that the query's owner may not read now, or that was purged;
        without ``query``, that is not public.
        """
        ...

    async def body(self, feed_id: FeedId) -> StoredBody | None:
        """The latest document, kept only while a subscription is as-is."""
        ...

    async def raw(self, feed_id: FeedId) -> StoredBody | None:
        """The last valid document of a feed whose format is kept as it came."""
        ...

    async def trim(self, retention: Retention, now: datetime, limit: int) -> int:
        """Drop old records and entry states nothing refers to; how many records."""
        ...
