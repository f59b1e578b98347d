"""Which entries were committed in a span of time, and how late they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol

import msgspec
from msgspec.structs import replace

from hub.core.status.freshness import publication_of
from hub.runtime.metrics import Metrics
from hub.runtime.series_memory import DelaySlot
from protocols.model import Entry
from storage.contract import Storage
from storage.packing import unpack
from storage.records import (
    EntryId,
    EntryRef,
    FeedId,
    Position,
    Record,
    RecordKind,
    StoredFeed,
)

MOST_RECORDS: Final = 5_000
"""Records examined for one part of a page of committed entries, of the wanted feed if
there is one; most may tell of no entries. Without words, and not by delay, a page is
one part."""
RECORD_PAGE: Final = 500
MOST_RANKED: Final = 500
"""Entries among which those with the longest delays are found."""
RANKED_AT_ONCE: Final = 100
OUT_OF_ORDER: Final = timedelta(seconds=10)
"""How far records may be out of order in the log, by the time they were found."""
_TOLD: Final = frozenset({RecordKind.ENTRIES, RecordKind.UPDATED})


class EntryOrder(StrEnum):
    EARLIEST = "earliest"
    LATEST = "latest"
    DELAY = "delay"  # the longest after their publication first


class EntryCursor(msgspec.Struct, frozen=True):
    """Where the next page of committed entries begins: at which entry of which
    record."""

    position: Position
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedFilter:
    """Which committed entries are wanted: those of a feed, and those with all of these
    words, or parts of words, in their titles, in any case."""

    feed_id: FeedId | None = None
    words: tuple[str, ...] = ()

    def has_words_of(self, entry: Entry) -> bool:
        title = entry.title.casefold()
        return all(each.casefold() in title for each in self.words)


ALL_COMMITTED: Final = CommittedFilter()
SEARCHED_PARTS: Final = 40
"""How many times as many entries as a page has room for are examined for words, and how
many parts of `RANKED_AT_ONCE`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _NotifiedEntry:
    """An entry as it is now, and a record that tells of it."""

    feed: StoredFeed
    record: Record
    id: EntryId
    entry: Entry

    @property
    def published(self) -> datetime | None:
        return self.entry.published or self.entry.updated

    @property
    def delay(self) -> float | None:
        """See `CommittedEntry`; of an update, since its own date."""
        entry = self.entry
        if self.record.kind is RecordKind.UPDATED:
            entry = replace(entry, published=None)
        date = publication_of(entry, entry.published or entry.updated, self.record.at)
        return (self.record.at - date).total_seconds() if date else None


@dataclass(slots=True)
class _Ranking:
    """Entries with a delay, the longest first, and how many have none."""

    entries: list[_NotifiedEntry] = field(default_factory=list)
    undated: int = 0

    def add(self, found: Sequence[_NotifiedEntry]) -> None:
        dated = [each for each in found if each.delay is not None]
        self.undated += len(found) - len(dated)
        self.entries += dated
        self.entries.sort(key=_delay_of, reverse=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedEntry:
    """An entry that a record tells of.

    ``delay``: seconds from its publication, or the date of its update, to its commit;
    None without a believable date.
    ``first_delivery``: seconds from the commit to the first 2xx of a callback; if not
    ``is_exact``, that is an upper bound. None: no callback has accepted it, or, if it
    ``is_sent``, only at a retry.
    """

    feed: StoredFeed
    record: Record
    id: EntryId
    title: str
    published: datetime | None
    delay: float | None
    first_delivery: float | None
    is_exact: bool
    is_sent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedPage:
    """A page of committed entries. ``next`` None: this is the last page. ``reached``:
    when what was looked at last for words was committed; None: all was.

    By delay there is one page: the first of those that are wanted among ``examined``
    entries, without the ``undated`` that have no delay. ``has_more``: there may be
    entries that were not looked at. Then ``others_within`` is None and those looked at
    are the last of the span, of the feed if it is one feed's; or they are of the times
    with the longest delays, and it is the seconds within which all other new entries
    came, as the hub counted them (see
    `hub.core.status.freshness.publications`, which believes fewer dates); 0: it counted
    no others.
    """

    entries: tuple[CommittedEntry, ...]
    next: EntryCursor | None
    reached: datetime | None = None
    examined: int | None = None
    undated: int | None = None
    has_more: bool = False
    others_within: float | None = None


class LateTimes(Protocol):
    """The part of `hub.services.hub_series.HubSeries` that is needed here."""

    @property
    def counted_from(self) -> datetime | None: ...

    def late_times(self, since: datetime, until: datetime) -> list[DelaySlot]: ...


class CommittedEntryService:
    def __init__(
        self,
        storage: Storage,
        metrics: Metrics | None = None,
        times: LateTimes | None = None,
    ) -> None:
        self._storage = storage
        self._times = times
        self._freshness = (metrics or Metrics()).freshness

    async def page(
        self,
        since: datetime,
        until: datetime,
        *,
        limit: int,
        cursor: EntryCursor | None = None,
        order: EntryOrder = EntryOrder.EARLIEST,
        wanted: CommittedFilter = ALL_COMMITTED,
    ) -> CommittedPage:
        """New and updated entries that were committed from ``since`` on and before
        ``until``.

        At most `MOST_RECORDS` records are examined, and as many in each of the
        `SEARCHED_PARTS` if words are wanted, so a page may be short and not the last.
        The cursor must come from a page in the same order.
        """
        if order is EntryOrder.DELAY:
            last = await self._by_delay(since, until, limit, wanted)
            if not last.has_more or wanted != ALL_COMMITTED:
                return last
            times = await self._late_times(since, until)
            if not times:
                return last
            return await self._of_late_times(since, until, limit, times)
        tell = (
            self._notified_entries
            if order is EntryOrder.EARLIEST
            else self._notified_backwards
        )
        found, reached = list[_NotifiedEntry](), None
        for _ in range(SEARCHED_PARTS if wanted.words else 1):
            room = limit - len(found)
            told, cursor = await tell(since, until, room, cursor, wanted.feed_id)
            if told and wanted.words:
                reached = told[-1][0].at
            found += await self._matching(told, wanted)
            if cursor is None or len(found) >= limit:
                break
        return CommittedPage(
            entries=await self._described(found),
            next=cursor,
            reached=reached if cursor else None,
        )

    async def _by_delay(
        self, since: datetime, until: datetime, limit: int, wanted: CommittedFilter
    ) -> CommittedPage:
        parts = SEARCHED_PARTS if wanted.words else MOST_RANKED // RANKED_AT_ONCE
        ranking, examined, cursor = _Ranking(), 0, None
        for _ in range(parts):
            told, cursor = await self._notified_backwards(
                since, until, RANKED_AT_ONCE, cursor, wanted.feed_id
            )
            examined += len(told)
            ranking.add(await self._matching(told, wanted))
            if cursor is None or len(ranking.entries) >= MOST_RANKED:
                break
        return CommittedPage(
            entries=await self._described(ranking.entries[:limit]),
            next=None,
            examined=examined,
            undated=ranking.undated,
            has_more=cursor is not None,
        )

    async def _late_times(self, since: datetime, until: datetime) -> list[DelaySlot]:
        """Those of a span with the longest delays first; none if entries came before
        delays were counted."""
        counted_from = self._times.counted_from if self._times else None
        if self._times is None or counted_from is None:
            return []
        begin, log = counted_from - OUT_OF_ORDER, self._storage.log
        if since < begin:
            first = await log.position_before(since)
            if await log.position_before(begin) > first:
                return []
        return self._times.late_times(since, until)

    async def _of_late_times(
        self,
        since: datetime,
        until: datetime,
        limit: int,
        times: Sequence[DelaySlot],
    ) -> CommittedPage:
        """``times``: those with the longest delays first."""
        told = dict[tuple[Position, EntryId], tuple[Record, EntryRef]]()
        ranking = _Ranking()
        for time in times:
            others_within = time.longest
            first = ranking.entries[:limit]
            if len(told) >= MOST_RANKED or _are_all_later(first, limit, time):
                break
            of_time, cursor = await self._notified_backwards(
                max(since, datetime.fromtimestamp(time.since, UTC) - OUT_OF_ORDER),
                min(until, datetime.fromtimestamp(time.until, UTC)),
                MOST_RANKED - len(told),
                None,
                None,
            )
            new = [each for each in of_time if _key(each) not in told]
            told |= {_key(each): each for each in new}
            ranking.add(await self._matching(new, ALL_COMMITTED))
            if cursor is not None:
                break
        else:
            others_within = 0.0
        return CommittedPage(
            entries=await self._described(ranking.entries[:limit]),
            next=None,
            examined=len(told),
            undated=ranking.undated,
            has_more=True,
            others_within=others_within,
        )

    async def _matching(
        self, told: Sequence[tuple[Record, EntryRef]], wanted: CommittedFilter
    ) -> list[_NotifiedEntry]:
        """Those that are wanted, of feeds that have not been purged."""
        ids = dict.fromkeys(ref.entry_id for _, ref in told)
        stored = {
            each.id: unpack(each.body, Entry)
            for each in await self._storage.log.entries(list(ids))
        }
        found = [
            (record, ref.entry_id, stored[ref.entry_id])
            for record, ref in told
            if ref.entry_id in stored and wanted.has_words_of(stored[ref.entry_id])
        ]
        if not found:
            return []
        feed_ids = list({record.feed_id for record, *_ in found})
        sources = await self._storage.entries.sources(feed_ids)
        feeds = {each.feed.id: each.feed for each in sources}
        return [
            _NotifiedEntry(
                feed=feeds[record.feed_id], record=record, id=id, entry=entry
            )
            for record, id, entry in found
            if record.feed_id in feeds
        ]

    async def _described(
        self, found: Sequence[_NotifiedEntry]
    ) -> tuple[CommittedEntry, ...]:
        if not found:
            return ()
        records = {each.record.position: each.feed.id for each in found}
        sent = await self._storage.deliveries.first_successes(
            [(feed_id, position) for position, feed_id in records.items()]
        )
        return tuple(self._committed_entry(each, sent) for each in found)

    async def _notified_entries(
        self,
        since: datetime,
        until: datetime,
        limit: int,
        cursor: EntryCursor | None,
        feed_id: FeedId | None,
    ) -> tuple[list[tuple[Record, EntryRef]], EntryCursor | None]:
        """The entries that records tell of, and where the next page begins."""
        log = self._storage.log
        if cursor:
            after = Position(cursor.position - 1)
        else:
            after = await log.position_before(since - OUT_OF_ORDER)
        told: list[tuple[Record, EntryRef]] = []
        for _ in range(MOST_RECORDS // RECORD_PAGE):
            records = await log.records(after=after, limit=RECORD_PAGE, feed_id=feed_id)
            for record in records:
                if record.at >= until + OUT_OF_ORDER:
                    return told, None
                refs = _wanted(record, since, until)
                first = _done_of(record, cursor)
                last = first + limit - len(told)
                told += [(record, ref) for ref in refs[first:last]]
                if len(refs) > last:
                    return told, EntryCursor(record.position, last)
                after = record.position
            if len(records) < RECORD_PAGE:
                return told, None
        return told, EntryCursor(Position(after + 1), 0)

    async def _notified_backwards(
        self,
        since: datetime,
        until: datetime,
        limit: int,
        cursor: EntryCursor | None,
        feed_id: FeedId | None,
    ) -> tuple[list[tuple[Record, EntryRef]], EntryCursor | None]:
        log = self._storage.log
        if cursor:
            upto = cursor.position
        else:
            upto = await log.position_before(until + OUT_OF_ORDER)
        told: list[tuple[Record, EntryRef]] = []
        for _ in range(MOST_RECORDS // RECORD_PAGE):
            records = await log.latest_records(
                upto=upto, limit=RECORD_PAGE, feed_id=feed_id
            )
            for record in records:
                if record.at < since - OUT_OF_ORDER:
                    return told, None
                refs = _wanted(record, since, until)[::-1]
                first = _done_of(record, cursor)
                last = first + limit - len(told)
                told += [(record, ref) for ref in refs[first:last]]
                if len(refs) > last:
                    return told, EntryCursor(record.position, last)
                upto = Position(record.position - 1)
            if len(records) < RECORD_PAGE:
                return told, None
        return told, EntryCursor(upto, 0)

    def _committed_entry(
        self, told: _NotifiedEntry, sent: Mapping[Position, datetime | None]
    ) -> CommittedEntry:
        record = told.record
        first = self._freshness.to_delivery_of_record(record.position)
        settled = sent.get(record.position)
        by_storage = (settled - record.at).total_seconds() if settled else None
        return CommittedEntry(
            feed=told.feed,
            record=record,
            id=told.id,
            title=told.entry.title,
            published=told.published,
            delay=told.delay,
            first_delivery=by_storage if first is None else first,
            is_exact=first is not None,
            is_sent=record.position in sent,
        )


def _key(told: tuple[Record, EntryRef]) -> tuple[Position, EntryId]:
    record, ref = told
    return record.position, ref.entry_id


def _are_all_later(
    ranked: Sequence[_NotifiedEntry], count: int, time: DelaySlot
) -> bool:
    """Whether these are so many, none of which was committed sooner after its
    publication than any entry of that time."""
    return len(ranked) == count and _delay_of(ranked[-1]) >= time.longest


def _delay_of(entry: _NotifiedEntry) -> float:
    return entry.delay or 0.0


def _wanted(record: Record, since: datetime, until: datetime) -> Sequence[EntryRef]:
    """The new and updated entries of a record, if it is in the span of time."""
    is_told = record.kind in _TOLD and record.source is None
    return record.entries if is_told and since <= record.at < until else ()


def _done_of(record: Record, cursor: EntryCursor | None) -> int:
    """How many of the record's entries were on the previous page."""
    is_begun = cursor is not None and cursor.position == record.position
    return cursor.number if cursor and is_begun else 0
