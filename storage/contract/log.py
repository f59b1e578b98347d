"""The log and what reads it: records, entries, and search."""

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
    """The log: one transaction writes to it, many readers read it."""

    async def commit(self, fetch: FetchCommit) -> CommitOutcome:
        """Apply what a fetch found, unless the feed has changed since the fetch was
        decided.

        The feed's version tells: if somebody edits the feed between the fetch's target
        and its commit, the fetch is decided anew. The rarely changing part of the
        polling state (see `FetchCommit`) is written only if it has changed. A commit
        that finds nothing (`FetchCommit.is_quiet`) need not be durable: if it is lost,
        the feed is fetched once more.

        Raises `BodyRequired`, with nothing applied, if there is news without a body and
        an as-is subscription to send it to; and `StaleQueries` if track queries were
        added that its entries were not matched against. Matches of queries that no
        longer exist are left out, and all matches if the feed has become private.
        """
        ...

    async def end(self) -> Cursor:
        """Where the log ends: linearizable, over all nodes.

        The result is never below a position that any call on any node returned before
        this call began. From then on this node reads all records up to it. So a cursor
        above it was not given out by this log, and a cursor given out by another node
        is never above it.
        """
        ...

    async def wait(self, after: Position, seconds: float) -> Position:
        """Return the log's end once it is above ``after``, or after so many seconds.

        It is the end that this node knows of: commits of other nodes may become known a
        little later.
        """
        ...

    async def records(
        self, *, after: Position, limit: int, feed_id: FeedId | None = None
    ) -> list[Record]: ...

    async def latest_records(
        self, *, upto: Position, limit: int, feed_id: FeedId | None = None
    ) -> list[Record]:
        """The last records up to and including a position, the latest first."""
        ...

    async def last_before(self, feed_id: FeedId, moment: datetime) -> Position:
        """The feed's last record that was appended before that moment; `BEFORE_ALL` if
        the log has none."""
        ...

    async def position_before(self, moment: datetime) -> Position:
        """The position of the last record in the whole log appended before that moment,
        as far as records are in order of time; `BEFORE_ALL` if the log has none."""
        ...

    async def trails(self, asked: Sequence[tuple[FeedId, Position]]) -> list[FeedTrail]:
        """What each feed has left in the log, up to and including a position, in the
        order asked for."""
        ...

    async def entries(self, ids: Sequence[EntryId]) -> list[StoredEntry]:
        """Entries as they are now, in the order asked for; unknown ids are left out."""
        ...

    async def latest_entries(self, feed_id: FeedId, limit: int) -> list[StoredEntry]:
        """The latest entries, newest first; deleted ones are left out.

        For a track query: the entries it matched, as far back as the log goes, from
        feeds that are public now; the entry matched last counts as the newest.
        """
        ...

    async def feed_head(self, feed_id: FeedId) -> bytes | None:
        """The packed `protocols.model.Feed` of the last document."""
        ...

    async def source(
        self, feed_id: FeedId, query: FeedId | None = None
    ) -> SourceFeed | None:
        """The feed to show as the source of entries found by a track query.

        None if the query's owner may not read the feed now, or the feed was purged.
        Without ``query``: None unless the feed is public.
        """
        ...

    async def body(self, feed_id: FeedId) -> StoredBody | None:
        """The latest document, kept only while a subscription is as-is."""
        ...

    async def raw(self, feed_id: FeedId) -> StoredBody | None:
        """The last valid document of a feed whose documents are kept unparsed."""
        ...

    async def trim(self, retention: Retention, now: datetime, limit: int) -> int:
        """Delete the oldest records, and entries that nothing refers to any more.

        Returns how many records were deleted, including those deleted with their feed;
        ``limit`` at most, and fewer if they name many entries.
        """
        ...


class EntryStore(Protocol):
    """Entries that are not deleted, of one feed or of several together.

    The cost of a page depends only on its length and the number of feeds.
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
        """The newest entries between ``after`` and ``before``, both excluded.

        ``also``: entries of other feeds to include; each of them is looked at.
        ``listed_only``: leave out entries that are unlisted, by themselves or with
        their feed.
        """
        ...

    async def place(
        self, feeds: Sequence[FeedId], keys: Sequence[str]
    ) -> EntryPlace | None:
        """The place of the entry with one of these keys, whether deleted or not."""
        ...

    async def place_of(self, entry_id: EntryId) -> EntryPlace | None: ...

    async def sources(self, feeds: Sequence[FeedId]) -> list[EntrySource]:
        """What is known of these feeds, in the order asked for; unknown ids are left
        out."""
        ...


class SearchStore(Protocol):
    """An index of words, kept by one reader of the log; there may be only one."""

    async def state(self) -> SearchState: ...

    async def keep(self, days: float) -> None:
        """Cover entries of so many days, and no others; 0: keep no index.

        If that is more days than before, all entries are to be read again; if there was
        no index, the log is read from its end. With 0, the whole index becomes a former
        index; no other former index may exist then.
        """
        ...

    async def remove_former(self, limit: int) -> int:
        """Remove up to ``limit`` rows of a former index; returns how many, 0 when none
        is left."""
        ...

    async def merge(self, limit: int) -> int:
        """Do about ``limit`` steps of merging, which keeps the index small and quick;
        returns 0 when nothing is left to merge."""
        ...

    async def unread(
        self, since: datetime, limit: int
    ) -> tuple[list[EntryId], EntryId]:
        """What to index of the next ``limit`` unread entries, and below which id all
        are unread.

        The entries come newest first: those dated ``since`` then or later that are not
        in the index. The id is 0 if nothing remains unread.
        """
        ...

    async def dated_before(self, moment: datetime, limit: int) -> list[EntryId]:
        """Entries in the index dated before that moment, the oldest first."""
        ...

    async def waiting(self, limit: int) -> list[EntryId]:
        """Entries that are to be indexed though the log does not name them."""
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
        """Replace everything the index holds for ``ids`` by these documents.

        Ids without a document are removed from the index, and none of the ids is
        waiting any more. Entries dated before ``since`` are removed, too. If
        ``position`` or ``unread`` is None, it stays as it was.
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
        Deleted entries and those of removed feeds are left out. Private and unlisted
        entries are left out unless the ``viewer`` subscribes to their feed, and with
        ``listed_only`` unlisted entries of all feeds are. A ``viewer`` of None sees
        everything.
        """
        ...
