"""The log and its readers: records, entries, and search.

One transaction in, many readers out.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from storage.records import (
    AccountId,
    CommitOutcome,
    Cursor,
    EntryId,
    EntryPlace,
    EntrySource,
    FeedId,
    FeedTrail,
    FetchCommit,
    Matches,
    Position,
    Record,
    Retention,
    SearchDocument,
    SearchState,
    SourceFeed,
    StoredBody,
    StoredEntry,
    Term,
)


class LogStore(Protocol):
    """The log: one transaction in, many readers out."""

    async def commit(self, fetch: FetchCommit) -> CommitOutcome:
        """Apply what a fetch found, unless the feed is not as it was decided on.

        That is told by its version: whoever edits the feed between the fetch's target
        and its commit has the fetch decided anew. What is cold of the polling state
        (see `FetchCommit`) is written only where it has changed.

        Raises `BodyRequired`, with nothing applied, if there is news without a body and
        an as-is subscription to send it to; and `StaleQueries` if track queries came
        that its entries were not held against. Matches of queries that are gone are
        left out, and all of them if the feed has become private.
        """
        ...

    async def end(self) -> Cursor:
        """Where the log ends: linearizable, over all nodes.

        Never below a position that any call on any node has told of before this one
        began. From then on this node reads all records up to there. So a cursor above
        it is none of this log's, and one that another node gave out never is.
        """
        ...

    async def wait(self, after: Position, seconds: float) -> Position:
        """Return the log's end when it is above ``after``, or after so many seconds.

        It is the end that this node knows of: that of other nodes' commits may come a
        little later.
        """
        ...

    async def records(
        self, *, after: Position, limit: int, feed_id: FeedId | None = None
    ) -> list[Record]: ...

    async def last_before(self, feed_id: FeedId, moment: datetime) -> Position:
        """The feed's last record that was appended before that moment; `BEFORE_ALL` if
        the log has none."""
        ...

    async def position_before(self, moment: datetime) -> Position:
        """The last record of all that was appended before that moment, as far as they
        are in order of time; `BEFORE_ALL` if the log has none."""
        ...

    async def trails(self, asked: Sequence[tuple[FeedId, Position]]) -> list[FeedTrail]:
        """What each feed has left in the log, up to and with a position, in the order
        asked for."""
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

        None if the query's owner may not read the feed now, or it was purged. Without
        ``query``: None unless the feed is public.
        """
        ...

    async def body(self, feed_id: FeedId) -> StoredBody | None:
        """The latest document, kept only while a subscription is as-is."""
        ...

    async def raw(self, feed_id: FeedId) -> StoredBody | None:
        """The last valid document of a feed whose format is kept as it came."""
        ...

    async def trim(self, retention: Retention, now: datetime, limit: int) -> int:
        """Drop the oldest records, and entries that nothing refers to any more.

        How many records there were, those counted that a feed took with it; ``limit``
        at most, and fewer if they name many entries.
        """
        ...


class EntryStore(Protocol):
    """Entries that are not deleted, of one feed or of several together.

    What a page costs depends on its length and the number of feeds only.
    """

    async def newest(
        self,
        feeds: Sequence[FeedId],
        *,
        limit: int,
        before: EntryPlace | None = None,
        after: EntryPlace | None = None,
        also: Sequence[EntryId] = (),
        listed_only: bool = False,
    ) -> list[StoredEntry]:
        """The newest of those between ``after`` and ``before``, both left out.

        ``also``: entries of other feeds that count as well; each of them is looked at.
        ``listed_only``: without those that are unlisted, by themselves or with their
        feed.
        """
        ...

    async def place(
        self, feeds: Sequence[FeedId], keys: Sequence[str]
    ) -> EntryPlace | None:
        """Where the entry with one of these keys stands, whether deleted or not."""
        ...

    async def place_of(self, entry_id: EntryId) -> EntryPlace | None: ...

    async def sources(self, feeds: Sequence[FeedId]) -> list[EntrySource]:
        """In the order asked for; unknown ids are left out."""
        ...


class SearchStore(Protocol):
    """An index of words, kept by a reader of the log; there may be one only."""

    async def state(self) -> SearchState: ...

    async def keep(self, days: float) -> None:
        """Cover entries of so many days, and no other; 0: keep no index.

        Where that is more than before, all entries are unread from then on; where there
        was no index, the log is read from its end. For 0 all there is becomes a former
        index, of which there must be none.
        """
        ...

    async def remove_former(self, limit: int) -> int:
        """Remove so many rows of a former index at most; how many, 0: none is left."""
        ...

    async def merge(self, limit: int) -> int:
        """Do so much, about, of what keeps the index small and quick; 0: all is."""
        ...

    async def unread(
        self, since: datetime, limit: int
    ) -> tuple[list[EntryId], EntryId]:
        """Of the next unread entries, ``limit`` at most and the newest first, those
        that are dated ``since`` then and not in the index; and below which entry all
        are unread still, 0 if none is."""
        ...

    async def dated_before(self, moment: datetime, limit: int) -> list[EntryId]:
        """Entries in the index, the oldest first."""
        ...

    async def waiting(self, limit: int) -> list[EntryId]:
        """Entries that are to be looked at though the log does not name them."""
        ...

    async def index(
        self,
        ids: Sequence[EntryId],
        documents: Sequence[SearchDocument],
        position: Position | None = None,
        *,
        since: datetime | None = None,
        unread: EntryId | None = None,
    ) -> None:
        """Put these documents in the place of whatever was known of ``ids``.

        Those of ``ids`` without a document are forgotten, and none waits any longer. So
        are those dated before ``since``. ``position``, ``unread`` None: as they were.
        """
        ...

    async def find(
        self,
        wanted: Term,
        *,
        viewer: AccountId | None,
        limit: int,
        below: int | None = None,
        listed_only: bool = False,
    ) -> Matches:
        """A page of what matches, newest first, from ``below`` on.

        Up to ``limit`` matching documents are looked at, fewer if they are large.
        Deleted entries and those of removed feeds are left out. So are private and
        unlisted ones of feeds to which the ``viewer`` does not subscribe, and with
        ``listed_only`` unlisted ones of all feeds. ``viewer`` None sees all.
        """
        ...
