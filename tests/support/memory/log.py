"""The log of the model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from math import inf

from msgspec.structs import replace

from protocols.model import Deletion, Entry
from storage.errors import BodyRequired, WriteFailed
from storage.packing import pack, pack_bytes
from storage.records import (
    BEFORE_ALL,
    CommitOutcome,
    Cursor,
    DocumentWrite,
    EntryId,
    EntryRef,
    FeedId,
    FeedState,
    FeedTrail,
    FetchCommit,
    NotStored,
    Position,
    Record,
    RecordKind,
    Retention,
    Stored,
    StoredBody,
    StoredEntry,
    kept_polls,
)
from storage.subscription_filter import DOCUMENT_KINDS, keeps_document, superseded

from .sites import put_site
from .state import ModelEntry, State, milliseconds

LATEST = 50


class MemoryLog:
    def __init__(self, state: State) -> None:
        self._state = state
        self._moved = asyncio.Event()

    async def commit(self, fetch: FetchCommit) -> CommitOutcome:
        feed = self._state.feeds.get(fetch.feed_id)
        if feed is None or feed.stored.state is FeedState.REMOVED:
            return NotStored.GONE
        if fetch.version not in (None, feed.version):
            return NotStored.STALE
        self._refuse_unknown(fetch)
        self._require_document(fetch)
        feed.version += fetch.changes_cold or not fetch.is_quiet
        at, known = milliseconds(fetch.at), feed.stored
        state = fetch.state or known.state
        condition = fetch.condition or known.condition
        is_as_before = condition is known.condition
        feed.stored = replace(
            feed.stored,
            next_fetch=milliseconds(fetch.next_fetch),
            polling=fetch.polling,
            state=state,
            turned_at=known.turned_at if state is known.state else at,
            condition=condition,
            condition_since=known.condition_since if is_as_before else at,
            removed_at=at if state is FeedState.REMOVED else None,
            title=feed.stored.title if fetch.title is None else fetch.title,
            format=feed.stored.format if fetch.format is None else fetch.format,
        )
        if self._state.are_events_wanted:
            self._state.event_queue += fetch.events
        feed.seen = feed.seen if fetch.seen is None else fetch.seen
        feed.slices = feed.slices if fetch.slices is None else fetch.slices
        feed.inventory = feed.inventory if fetch.inventory is None else fetch.inventory
        feed.raw = _packed(fetch.raw) or feed.raw
        if fetch.poll is not None:
            poll = replace(fetch.poll, at=milliseconds(fetch.poll.at))
            feed.polls = tuple(kept_polls([poll, *feed.polls]))
        if fetch.site is not None:
            put_site(feed, fetch.site)
        feed.head = feed.head if fetch.head is None else pack(fetch.head)
        subscribers = self._state.active(fetch.feed_id)
        format = feed.stored.format
        is_kept = any(keeps_document(each.format, format) for each in subscribers)
        feed.body = feed.body if is_kept else None
        if fetch.body and is_kept:
            kept = feed.body.position if feed.body else Position(0)
            position = max(kept, self._document_position(fetch))
            feed.body = _packed(fetch.body, position)
        for deletion in fetch.deletions:
            self._delete(deletion, fetch)
        for entry in fetch.entries:
            self._put(entry, fetch)
        past = superseded([record.kind for record in fetch.records])
        positions = [
            self._append(fetch, index, past[index]) for index in range(len(past))
        ]
        if positions:
            self._state.claim_after_commit()
        return Stored(tuple(positions), feed.version)

    def _document_position(self, fetch: FetchCommit) -> Position:
        """The position of the last record that will be news of the document; 0 if
        none."""
        numbers = [
            number
            for number, record in enumerate(fetch.records, self._state.log_end + 1)
            if record.kind in DOCUMENT_KINDS
        ]
        return Position(max(numbers, default=0))

    def _require_document(self, fetch: FetchCommit) -> None:
        is_news = any(record.kind in DOCUMENT_KINDS for record in fetch.records)
        subscribers = self._state.active(fetch.feed_id)
        format = fetch.format or self._state.feeds[fetch.feed_id].stored.format
        is_wanted = any(keeps_document(each.format, format) for each in subscribers)
        if is_news and is_wanted and fetch.body is None:
            raise BodyRequired(f"feed {fetch.feed_id}")

    def _refuse_unknown(self, fetch: FetchCommit) -> None:
        written = {each.key for each in fetch.entries}
        written |= {each.key for each in fetch.deletions}
        for record in fetch.records:
            for key, _fresh in record.entries:
                if key not in written and self._find(fetch.feed_id, key) is None:
                    raise WriteFailed(f"no entry {key!r}")

    def _find(self, feed_id: FeedId, key: str) -> ModelEntry | None:
        for each in self._state.entries.values():
            if (each.stored.feed_id, each.stored.key) == (feed_id, key):
                return each
        return None

    def _put(self, entry: Entry, fetch: FetchCommit) -> None:
        date = entry.published or entry.updated
        published = date and milliseconds(min(date, fetch.at))
        known = self._known_or_added(entry, fetch)
        known.stored = replace(
            known.stored,
            revision=known.stored.revision + 1,
            deleted=False,
            body=pack(entry),
            unlisted=entry.unlisted,
        )
        known.sorted_at = published or known.sorted_at

    def _delete(self, deletion: Deletion, fetch: FetchCommit) -> None:
        entry = Entry(key=deletion.key, id=deletion.id)
        known = self._known_or_added(entry, fetch)
        revision = known.stored.revision + 1
        known.stored = replace(known.stored, revision=revision, deleted=True)

    def _known_or_added(self, entry: Entry, fetch: FetchCommit) -> ModelEntry:
        """The entry; one that is not known is added at revision 0."""
        known = self._find(fetch.feed_id, entry.key)
        entry_id = EntryId(self._state.next_id("entry"))  # unused ones leave gaps
        if known is None:
            stored = StoredEntry(
                id=entry_id,
                feed_id=fetch.feed_id,
                key=entry.key,
                revision=0,
                deleted=False,
                body=pack(entry),
            )
            known = ModelEntry(stored, milliseconds(fetch.at))
            self._state.entries[entry_id] = known
        return known

    def _append(self, fetch: FetchCommit, index: int, is_superseded: bool) -> Position:
        write = fetch.records[index]
        self._state.log_end += 1
        position = Position(self._state.log_end)
        refs = []
        for key, fresh in write.entries:
            entry = self._find(fetch.feed_id, key)
            assert entry is not None
            entry.last_position = position
            refs.append(EntryRef(entry.stored.id, entry.stored.revision, fresh))
        self._state.records[position] = Record(
            position=position,
            at=milliseconds(fetch.at),
            feed_id=fetch.feed_id,
            kind=write.kind,
            status=write.status,
            entries=tuple(refs),
            is_superseded=is_superseded,
        )
        if write.kind is RecordKind.ERROR:
            self._state.feeds[fetch.feed_id].is_error_awaited = False
        if write.kind is not RecordKind.BASELINE:
            self._state.fan_out(position)
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
        return position

    async def end(self) -> Cursor:
        return Cursor(self._state.epoch, Position(self._state.log_end))

    async def wait(self, after: Position, seconds: float) -> Position:
        try:
            async with asyncio.timeout(seconds):
                while self._state.log_end <= after:
                    await self._moved.wait()
        except TimeoutError:
            pass
        return Position(self._state.log_end)

    async def records(
        self, *, after: Position, limit: int, feed_id: FeedId | None = None
    ) -> list[Record]:
        return [
            record
            for position, record in sorted(self._state.records.items())
            if position > after and feed_id in (None, record.feed_id)
        ][:limit]

    async def latest_records(
        self, *, upto: Position, limit: int, feed_id: FeedId | None = None
    ) -> list[Record]:
        everything = await self.records(
            after=BEFORE_ALL, limit=len(self._state.records), feed_id=feed_id
        )
        return [each for each in reversed(everything) if each.position <= upto][:limit]

    async def last_before(self, feed_id: FeedId, moment: datetime) -> Position:
        found = [
            position
            for position, record in self._state.records.items()
            if record.feed_id == feed_id and record.at < milliseconds(moment)
        ]
        return max(found, default=BEFORE_ALL)

    async def position_before(self, moment: datetime) -> Position:
        found = [
            position
            for position, record in self._state.records.items()
            if record.at < milliseconds(moment)
        ]
        return max(found, default=BEFORE_ALL)

    async def trails(self, asked: Sequence[tuple[FeedId, Position]]) -> list[FeedTrail]:
        return [self._trail(*each) for each in asked]

    def _trail(self, feed_id: FeedId, through: Position) -> FeedTrail:
        kept = [
            position
            for position, record in self._state.records.items()
            if record.feed_id == feed_id
            and position <= through
            and record.kind is not RecordKind.BASELINE
        ]
        trimmed = self._state.trimmed.get(feed_id, Position(0))
        return FeedTrail(last=max([*kept, trimmed]), trimmed=trimmed)

    async def entries(self, ids: Sequence[EntryId]) -> list[StoredEntry]:
        known = self._state.entries
        return [known[each].stored for each in ids if each in known]

    async def latest_entries(self, feed_id: FeedId, limit: int) -> list[StoredEntry]:
        found = [
            each
            for each in self._state.entries.values()
            if each.stored.feed_id == feed_id and not each.stored.deleted
        ]
        found.sort(key=lambda each: (-each.sorted_at.timestamp(), each.stored.id))
        return [each.stored for each in found[:limit]]

    async def feed_head(self, feed_id: FeedId) -> bytes | None:
        found = self._state.feeds.get(feed_id)
        return None if found is None else found.head

    async def body(self, feed_id: FeedId) -> StoredBody | None:
        found = self._state.feeds.get(feed_id)
        return None if found is None else found.body

    async def raw(self, feed_id: FeedId) -> StoredBody | None:
        found = self._state.feeds.get(feed_id)
        return None if found is None else found.raw

    async def trim(self, retention: Retention, now: datetime, limit: int) -> int:
        state = self._state
        undelivered = [
            *state.fanouts,
            *(each.position for each in state.chunks.values()),
        ]
        last = min(state.tail + limit, min(undelivered, default=state.log_end + 1) - 1)
        last = min(last, state.log_end)
        now = milliseconds(now)
        soft = self._last_beyond(retention.soft_age, retention.soft_count, now, last)
        hard = self._last_beyond(retention.hard_age, retention.hard_count, now, last)
        spared = self._before_spared(retention.spared_age, now, last)
        soft = max(soft, min(retention.soft_end, spared))
        hard = max(hard, min(retention.hard_end, spared))
        end = max(hard, min(soft, self._before_retries(soft)))
        if end <= state.tail:
            return 0
        self._pass_retries_by(end, now)
        return await self._drop(end)

    def _last_beyond(self, age: float, count: int, now: datetime, last: int) -> int:
        kept = [
            position
            for position, record in self._state.records.items()
            if self._state.tail < position <= last
            and (age == inf or record.at >= now - timedelta(seconds=age))
            and position > self._state.log_end - count
        ]
        return min(kept) - 1 if kept else last

    def _before_spared(self, age: float, now: datetime, last: int) -> int:
        return next(
            (
                position - 1
                for position, record in sorted(self._state.records.items())
                if self._state.tail < position <= last
                and record.at >= now - timedelta(seconds=age)
            ),
            last,
        )

    def _before_retries(self, end: int) -> int:
        needed = [
            position
            for subscription_id, each in self._state.retries.items()
            for position in self._state.feed_positions(
                self._state.subscriptions[subscription_id].feed_id
            )
            if each.stored.position < end and position > each.stored.position
        ]
        return min(needed) - 1 if needed else end

    def _pass_retries_by(self, end: int, now: datetime) -> None:
        for subscription_id, each in sorted(self._state.retries.items()):
            known = each.stored
            skipped = (known.skip_after, known.skip_to)
            missed = self._state.wanted(subscription_id, known.position, end, skipped)
            if not missed:
                continue
            self._state.bury(subscription_id, missed[0], missed[-1], "trimmed", now)
            first = known.missed[0] if known.missed else missed[0]
            each.stored = replace(
                known, position=Position(end), missed=(first, missed[-1])
            )

    async def _drop(self, end: int) -> int:
        state = self._state
        dropped = [
            record for position, record in state.records.items() if position <= end
        ]
        state.records = {
            position: record
            for position, record in state.records.items()
            if position > end
        }
        state.tail = end
        for record in dropped:
            if record.kind is not RecordKind.BASELINE:
                last = state.trimmed.get(record.feed_id, 0)
                state.trimmed[record.feed_id] = max(record.position, Position(last))
        for feed_id in {record.feed_id for record in dropped}:
            latest = {each.id for each in await self.latest_entries(feed_id, LATEST)}
            state.entries = {
                key: each
                for key, each in state.entries.items()
                if each.stored.feed_id != feed_id
                or key in latest
                or each.last_position > end
            }
        return len(dropped)


def _packed(
    document: DocumentWrite | None, position: Position = BEFORE_ALL
) -> StoredBody | None:
    if document is None:
        return None
    body = pack_bytes(document.body)
    return StoredBody(content_type=document.content_type, body=body, position=position)
