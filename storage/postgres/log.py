"""`storage.contract.LogStore` on PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from itertools import accumulate, islice
from typing import Final

from storage.errors import BodyRequired, StaleQueries
from storage.postgres.connections import ASKED, Connections, Row
from storage.postgres.deliveries import FollowingClaims
from storage.postgres.fetch_commits import (
    PackedCall,
    PackedFetch,
    RowTypes,
    pack_call,
    pack_news,
    pack_quiet,
)
from storage.postgres.rows import RECORD, read_stored_record, unpack_references
from storage.postgres.write_lanes import WriteLane
from storage.records import (
    BEFORE_ALL,
    CommitOutcome,
    Cursor,
    EntryId,
    FeedId,
    FeedTrail,
    FetchCommit,
    NotStored,
    Position,
    Record,
    Retention,
    SourceFeed,
    Stored,
    StoredBody,
    StoredEntry,
)
from storage.sqlite.fetch_commits import encode_values
from storage.sqlite.log import LARGE_BYTES, MANY_ENTRIES
from storage.sqlite.log_end import LogEnd
from storage.sqlite.rows import ENTRY, read_entry
from storage.sqlite.trimming import encode_limits

MOST_AT_ONCE: Final = 128
"""The most commits in one call: a larger one saves the server little, and while it has
one, those who wait for the next one encode theirs."""
MOST_BYTES: Final = 4 * 1024 * 1024
"""The most bytes of commits in one call, unless a single commit is larger."""
QUIET_PAUSE: Final = 0.01
"""Seconds between two calls for fetches without news: nobody waits for these."""
_POLL: Final = 0.2
"""Seconds between two checks whether another hub has appended something."""
_NEWS: Final = (
    "SELECT * FROM commit_news(%s, %s, %s, %s::fetch_commit[], %s::fetch_entry[],"
    " %s::fetch_entry[], %s::fetch_entry[], %s::fetch_record[])"
)
_QUIET: Final = (
    "SELECT c.place, c.version, set_config('synchronous_commit', 'off', TRUE)"
    " FROM commit_quiet(%s::fetch_commit[]) c, require_term(%s)"
)
"""Nobody waits for the server's disk: what a crash of the server takes away is polled
once more."""
_POSITION_BEFORE: Final = """
WITH RECURSIVE search (low, high, moment) AS (
    SELECT (SELECT min(position) FROM kept_records),
        (SELECT max(position) FROM kept_records) + 1, %s::bigint
    UNION ALL
    SELECT CASE WHEN is_before THEN (low + high) / 2 + 1 ELSE low END,
        CASE WHEN is_before THEN high ELSE (low + high) / 2 END, moment
    FROM search, LATERAL (SELECT at < moment AS is_before FROM kept_records
        WHERE position >= (low + high) / 2 ORDER BY position LIMIT 1) m
    WHERE low < high
)
SELECT max(low) FROM search
"""
"""Finds the position by halving the range. An index of all records by time would have
to be written by each commit."""
_TRAILS: Final = """
SELECT coalesce((SELECT r.position FROM kept_records r WHERE r.feed_id = a.feed_id
        AND r.position <= a.position AND r.kind <> 'baseline'
        ORDER BY r.position DESC LIMIT 1), 0),
    coalesce((SELECT t.position FROM trimmed t WHERE t.feed_id = a.feed_id), 0)
FROM unnest(%s::bigint[], %s::bigint[]) WITH ORDINALITY a (feed_id, position, place)
ORDER BY a.place
"""
_MATCHES: Final = """
SELECT r.refs FROM kept_records r JOIN feeds f ON f.id = r.source_id
WHERE r.feed_id = %s AND may_read(viewer_of(r.feed_id), f) AND NOT f.unlisted
ORDER BY r.position DESC LIMIT %s
"""
_TRIM: Final = "SELECT trim_log(%s, %s, %s, %s, %s, %s, %s, %s, %s)"

_NewsOutcome = tuple[Position, int, int | None]
"""The log's end before a commit, how many records it has, and its feed's version, as
``commit_news`` encodes it."""


class PostgresLog:
    def __init__(
        self,
        connections: Connections,
        row_types: RowTypes,
        epoch: str,
        log_end: LogEnd,
        claims: FollowingClaims,
    ) -> None:
        self._claims = claims
        self._number = 0
        self._connections = connections
        self._epoch = epoch
        self._log_end = log_end
        self._news = WriteLane(
            partial(pack_call, row_types),
            self._commit_news,
            size_of=lambda fetch: fetch.size,
            key_of=lambda fetch: fetch.feed_id,
            most=MOST_AT_ONCE,
            most_size=MOST_BYTES,
        )
        self._quiet = WriteLane(
            partial(pack_call, row_types),
            self._commit_quiet,
            key_of=lambda fetch: fetch.feed_id,
            most=MOST_AT_ONCE,
            pause=QUIET_PAUSE,
        )

    async def commit(self, fetch: FetchCommit) -> CommitOutcome:
        if fetch.is_quiet:
            return await self._quiet.submit(pack_quiet(fetch))
        packed = await _pack(fetch)
        if fetch.records and (terms := self._claims.ask()) is not None:
            packed = packed._replace(terms=terms)
        end, count, version = await self._news.submit(packed)
        match version:
            case None:
                return NotStored.GONE
            case -1:
                return NotStored.STALE
            case -2:
                raise BodyRequired(f"feed {fetch.feed_id} has as-is subscriptions")
            case -3:
                raise StaleQueries("there are queries of a later version")
        return Stored(tuple(map(Position, range(end + 1, end + count + 1))), version)

    async def _commit_news(self, call: PackedCall) -> Sequence[_NewsOutcome]:
        *rows, fetches = call
        try:
            self._number += 1
            end, versions, counts = await self._connections.write_in_lane(
                _NEWS, rows, number=self._number, then=partial(self._advance, fetches)
            )
        finally:
            for each in fetches:
                if each.terms is not None:
                    self._claims.follow(each.terms)
        counts = counts or [len(each.records) for each in fetches]
        ends = accumulate(counts, initial=end or 0)
        return [*zip(ends, counts, versions, strict=False)]

    def _advance(self, fetches: Sequence[PackedFetch], answer: Row) -> None:
        end, _, counts = answer
        count = sum(counts or (len(each.records) for each in fetches))
        if end is not None and count:
            self._log_end.advance((Position(end + count),))

    async def _commit_quiet(self, call: PackedCall) -> Sequence[CommitOutcome]:
        found = await self._connections.write(
            _QUIET, (call.commits, self._connections.incarnation)
        )
        outcomes: list[CommitOutcome] = [NotStored.GONE] * len(call.fetches)
        for place, version, _ in found:
            outcomes[place - 1] = _quiet_outcome(version)
        return outcomes

    async def end(self) -> Cursor:
        row = await self._connections.first("SELECT epoch, head FROM log_head")
        epoch, last = row or (self._epoch, 0)
        self._log_end.advance((Position(last),))
        return Cursor(epoch, Position(last))

    async def wait(self, after: Position, seconds: float) -> Position:
        """This node's commits are seen at once, those of others by checking; a node
        that is alone has no others."""
        until = asyncio.get_running_loop().time() + seconds
        while True:
            left = until - asyncio.get_running_loop().time()
            is_alone = self._connections.is_alone
            pause = left if is_alone else min(left, _POLL)
            end = await self._log_end.wait(after, max(0.0, pause))
            if end > after or left <= 0:
                return end
            await self.end()

    async def records(
        self, *, after: Position, limit: int, feed_id: FeedId | None = None
    ) -> list[Record]:
        return await self._records("position > %(place)s", after, limit, feed_id)

    async def latest_records(
        self, *, upto: Position, limit: int, feed_id: FeedId | None = None
    ) -> list[Record]:
        return await self._records(
            "position <= %(place)s", upto, limit, feed_id, direction="DESC"
        )

    async def _records(
        self,
        condition: str,
        place: Position,
        limit: int,
        feed_id: FeedId | None,
        direction: str = "ASC",
    ) -> list[Record]:
        of_feed = "" if feed_id is None else " AND feed_id = %(feed)s"
        rows = await self._connections.all(
            f"SELECT {RECORD} FROM kept_records WHERE {condition}{of_feed}"
            f" ORDER BY position {direction} LIMIT %(limit)s",
            {"place": place, "limit": limit, "feed": feed_id},
        )
        return [read_stored_record(row) for row in rows]

    async def last_before(self, feed_id: FeedId, moment: datetime) -> Position:
        row = await self._connections.first(
            "SELECT position FROM kept_records WHERE feed_id = %s AND at < %s"
            " ORDER BY position DESC LIMIT 1",
            (feed_id, moment),
        )
        return Position(row[0]) if row else BEFORE_ALL

    async def position_before(self, moment: datetime) -> Position:
        row = await self._connections.first(_POSITION_BEFORE, (moment,))
        return Position(row[0] - 1) if row and row[0] else BEFORE_ALL

    async def trails(self, asked: Sequence[tuple[FeedId, Position]]) -> list[FeedTrail]:
        rows = await self._connections.all(
            _TRAILS, ([feed for feed, _ in asked], [upto for _, upto in asked])
        )
        return [
            FeedTrail(last=max(kept, trimmed), trimmed=trimmed)
            for kept, trimmed in rows
        ]

    async def entries(self, ids: Sequence[EntryId]) -> list[StoredEntry]:
        rows = await self._connections.all(
            f"SELECT {ENTRY}"
            f" FROM {ASKED}"
            " JOIN entries e ON e.id = asked.id ORDER BY asked.place",
            (list(ids),),
        )
        return [read_entry(row) for row in rows]

    async def latest_entries(self, feed_id: FeedId, limit: int) -> list[StoredEntry]:
        """The latest entries by their own date, or else by when they were stored."""
        rows = await self._connections.all(
            f"SELECT {ENTRY} FROM entries e WHERE e.feed_id = %s AND NOT e.deleted"
            " ORDER BY e.sorted_at DESC, e.id LIMIT %s",
            (feed_id, limit),
        )
        found = [read_entry(row) for row in rows]
        return found or await self._latest_matches(feed_id, limit)

    async def _latest_matches(self, feed_id: FeedId, limit: int) -> list[StoredEntry]:
        """The last entries that a track query matched; empty for any other feed."""
        rows = await self._connections.all(_MATCHES, (feed_id, limit))
        ids = dict.fromkeys(
            ref.entry_id for (packed,) in rows for ref in unpack_references(packed)
        )
        matched = await self.entries(list(ids)) if ids else []
        shown = (each for each in matched if not (each.deleted or each.unlisted))
        return list(islice(shown, limit))

    async def feed_head(self, feed_id: FeedId) -> bytes | None:
        row = await self._connections.first(
            "SELECT head FROM feed_heads WHERE feed_id = %s", (feed_id,)
        )
        return None if row is None else row[0]

    async def source(
        self, feed_id: FeedId, query: FeedId | None = None
    ) -> SourceFeed | None:
        row = await self._connections.first(
            "SELECT f.url, h.head FROM feeds f LEFT JOIN feed_heads h"
            " ON h.feed_id = f.id WHERE f.id = %s AND may_read(viewer_of(%s), f)",
            (feed_id, query),
        )
        return None if row is None else SourceFeed(row[0], row[1])

    async def body(self, feed_id: FeedId) -> StoredBody | None:
        row = await self._connections.first(
            "SELECT content_type, body, position FROM bodies WHERE feed_id = %s",
            (feed_id,),
        )
        if row is None:
            return None
        content_type, body, position = row
        return StoredBody(content_type=content_type, body=body, position=position)

    async def raw(self, feed_id: FeedId) -> StoredBody | None:
        row = await self._connections.first(
            "SELECT content_type, body FROM raw_documents WHERE feed_id = %s",
            (feed_id,),
        )
        return None if row is None else StoredBody(content_type=row[0], body=row[1])

    async def trim(self, retention: Retention, now: datetime, limit: int) -> int:
        limits = encode_limits(retention, now)
        ((trimmed,),) = await self._connections.write(
            _TRIM,
            (
                *(limits.now, float(limits.soft_before), limits.soft_count),
                *(float(limits.hard_before), limits.hard_count, limits.soft_end),
                *(limits.hard_end, float(limits.spared_from), limit),
            ),
        )
        return int(trimmed)


def _quiet_outcome(version: int | None) -> CommitOutcome:
    """The outcome as ``commit_quiet`` encodes it."""
    if version is None:
        return NotStored.GONE
    return NotStored.STALE if version < 0 else Stored((), version)


async def _pack(fetch: FetchCommit) -> PackedFetch:
    if len(fetch.entries) + len(fetch.deletions) > MANY_ENTRIES:
        values = await asyncio.to_thread(encode_values, fetch)
    else:
        values = encode_values(fetch)
    if values.size > LARGE_BYTES:
        return await asyncio.to_thread(pack_news, fetch, values)
    return pack_news(fetch, values)
