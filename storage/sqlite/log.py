"""`storage.contract.LogStore` on SQLite."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from itertools import islice

import msgspec

from storage.records import (
    BEFORE_ALL,
    CommitOutcome,
    Cursor,
    EntryId,
    FeedId,
    FeedTrail,
    FetchCommit,
    Position,
    Record,
    Retention,
    SourceFeed,
    Stored,
    StoredBody,
    StoredEntry,
)
from storage.sqlite.batches import Batches
from storage.sqlite.columns import pack_ids, to_milliseconds
from storage.sqlite.delivery_chunks import CommitClaims
from storage.sqlite.feed_access import OWNER, may_read
from storage.sqlite.fetch_commits import (
    PAUSE,
    EncodedCommit,
    apply_commit,
    apply_quiet,
    encode_commit,
    encode_quiet,
    encode_values,
)
from storage.sqlite.log_end import LogEnd
from storage.sqlite.readers import Readers
from storage.sqlite.rows import ENTRY, RECORD, read_entry, read_record, unpack_refs
from storage.sqlite.trimming import encode_limits, trim_log
from storage.sqlite.writer import Writer

MANY_ENTRIES = 50
LARGE_BYTES = 64 * 1024
"""A commit with so many entries, or so many bytes, is encoded in a thread: packing it
takes two milliseconds."""

_MIDDLE_IS_BEFORE = (
    "(SELECT at FROM records WHERE position >= (low + high) / 2"
    " ORDER BY position LIMIT 1) < moment"
)
_POSITION_BEFORE = f"""
WITH RECURSIVE search (low, high, moment) AS (
    SELECT (SELECT min(position) FROM records),
        (SELECT max(position) FROM records) + 1, ?
    UNION ALL
    SELECT iif({_MIDDLE_IS_BEFORE}, (low + high) / 2 + 1, low),
        iif({_MIDDLE_IS_BEFORE}, high, (low + high) / 2), moment
    FROM search WHERE low < high
)
SELECT max(low) FROM search
"""
"""Finds the position by halving the range. An index of all records by time would have
to be written by each commit."""


class SqliteLog:
    def __init__(
        self,
        writer: Writer,
        readers: Readers,
        epoch: str,
        log_end: LogEnd,
        claims: CommitClaims,
    ) -> None:
        self._writer = writer
        self._quiet = Batches(writer, apply_quiet, pause=PAUSE)
        self._readers = readers
        self._epoch = epoch
        self._log_end = log_end
        self._claims = claims

    async def commit(self, fetch: FetchCommit) -> CommitOutcome:
        if fetch.is_quiet:
            return await self._quiet.submit(encode_quiet(fetch))
        encoded = await _encode(fetch)
        written = self._writer.submit(
            partial(apply_commit, encoded), then=self._note_end
        )
        if fetch.records:
            self._claims.follow()
        return await written

    def _note_end(self, outcome: CommitOutcome) -> None:
        if isinstance(outcome, Stored):
            self._log_end.advance(outcome.positions)

    async def end(self) -> Cursor:
        return Cursor(self._epoch, self._log_end.position)

    async def wait(self, after: Position, seconds: float) -> Position:
        return await self._log_end.wait(after, seconds)

    async def records(
        self, *, after: Position, limit: int, feed_id: FeedId | None = None
    ) -> list[Record]:
        return await self._records("position > :place", after, limit, feed_id)

    async def latest_records(
        self, *, upto: Position, limit: int, feed_id: FeedId | None = None
    ) -> list[Record]:
        return await self._records(
            "position <= :place", upto, limit, feed_id, direction="DESC"
        )

    async def _records(
        self,
        condition: str,
        place: Position,
        limit: int,
        feed_id: FeedId | None,
        direction: str = "ASC",
    ) -> list[Record]:
        of_feed = "" if feed_id is None else " AND feed_id = :feed"
        rows = await self._readers.all(
            f"SELECT {RECORD} FROM records WHERE {condition}{of_feed}"
            f" ORDER BY position {direction} LIMIT :limit",
            {"place": place, "limit": limit, "feed": feed_id},
        )
        return [read_record(row) for row in rows]

    async def last_before(self, feed_id: FeedId, moment: datetime) -> Position:
        row = await self._readers.first(
            "SELECT position FROM records WHERE feed_id = ? AND at < ?"
            " ORDER BY position DESC LIMIT 1",
            (feed_id, to_milliseconds(moment)),
        )
        return Position(row[0]) if row else BEFORE_ALL

    async def position_before(self, moment: datetime) -> Position:
        row = await self._readers.first(_POSITION_BEFORE, (to_milliseconds(moment),))
        return Position(row[0] - 1) if row and row[0] else BEFORE_ALL

    async def trails(self, asked: Sequence[tuple[FeedId, Position]]) -> list[FeedTrail]:
        rows = await self._readers.all(
            "SELECT coalesce((SELECT position FROM records"
            "  WHERE feed_id = a.value ->> 0 AND position <= a.value ->> 1"
            "  AND kind != 'baseline' ORDER BY position DESC LIMIT 1), 0),"
            " coalesce((SELECT position FROM trimmed WHERE feed_id = a.value ->> 0), 0)"
            " FROM json_each(?) a ORDER BY a.key",
            (msgspec.json.encode(asked).decode(),),
        )
        return [
            FeedTrail(last=max(kept, trimmed), trimmed=trimmed)
            for kept, trimmed in rows
        ]

    async def entries(self, ids: Sequence[EntryId]) -> list[StoredEntry]:
        rows = await self._readers.all(
            f"SELECT {ENTRY}"
            " FROM json_each(?) asked CROSS JOIN entries e ON e.id = asked.value"
            " ORDER BY asked.key",
            (pack_ids(ids),),
        )
        return [read_entry(row) for row in rows]

    async def latest_entries(self, feed_id: FeedId, limit: int) -> list[StoredEntry]:
        """The latest entries by their own date, or else by when they were stored."""
        rows = await self._readers.all(
            f"SELECT {ENTRY} FROM entries e"
            " WHERE feed_id = ? AND deleted = 0 ORDER BY sorted_at DESC, id LIMIT ?",
            (feed_id, limit),
        )
        found = [read_entry(row) for row in rows]
        return found or await self._latest_matches(feed_id, limit)

    async def _latest_matches(self, feed_id: FeedId, limit: int) -> list[StoredEntry]:
        """The last entries that a track query matched; empty for any other feed.

        Each record names at least one entry.
        """
        rows = await self._readers.all(
            "SELECT r.refs FROM records r CROSS JOIN feeds f ON f.id = r.source_id"
            f" WHERE r.feed_id = ? AND {may_read(OWNER.format('r.feed_id'))}"
            " AND NOT f.unlisted ORDER BY r.position DESC LIMIT ?",
            (feed_id, limit),
        )
        ids = dict.fromkeys(ref.entry_id for row in rows for ref in unpack_refs(row[0]))
        matched = await self.entries(list(ids)) if ids else []
        shown = (each for each in matched if not (each.deleted or each.unlisted))
        return list(islice(shown, limit))

    async def feed_head(self, feed_id: FeedId) -> bytes | None:
        row = await self._readers.first(
            "SELECT head FROM feed_heads WHERE feed_id = ?", (feed_id,)
        )
        return None if row is None else row[0]

    async def source(
        self, feed_id: FeedId, query: FeedId | None = None
    ) -> SourceFeed | None:
        row = await self._readers.first(
            "SELECT f.url, h.head FROM feeds f"
            " LEFT JOIN feed_heads h ON h.feed_id = f.id"
            f" WHERE f.id = :feed_id AND {may_read(OWNER.format(':query'))}",
            {"feed_id": feed_id, "query": query},
        )
        return None if row is None else SourceFeed(row[0], row[1])

    async def body(self, feed_id: FeedId) -> StoredBody | None:
        row = await self._readers.first(
            "SELECT content_type, body, position FROM bodies WHERE feed_id = ?",
            (feed_id,),
        )
        if row is None:
            return None
        content_type, body, position = row
        return StoredBody(content_type=content_type, body=body, position=position)

    async def raw(self, feed_id: FeedId) -> StoredBody | None:
        row = await self._readers.first(
            "SELECT content_type, body FROM raw_documents WHERE feed_id = ?", (feed_id,)
        )
        return None if row is None else StoredBody(content_type=row[0], body=row[1])

    async def trim(self, retention: Retention, now: datetime, limit: int) -> int:
        limits = encode_limits(retention, now)
        return await self._writer.submit(partial(trim_log, limits, limit))


async def _encode(fetch: FetchCommit) -> EncodedCommit:
    if len(fetch.entries) + len(fetch.deletions) > MANY_ENTRIES:
        values = await asyncio.to_thread(encode_values, fetch)
    else:
        values = encode_values(fetch)
    if values.size > LARGE_BYTES:
        return await asyncio.to_thread(encode_commit, fetch, values)
    return encode_commit(fetch, values)
