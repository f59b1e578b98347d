"""The way of entries: when an entry was published, which poll saw it, when it was
committed, and who was sent it; and which entries were committed in a span of time."""

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
from hub.services.feed_registration import existing_feed
from protocols.model import Entry
from storage.contract import LogStore, Storage
from storage.errors import NotFound
from storage.packing import unpack
from storage.records import (
    ENDED_SUBSCRIPTIONS,
    Attempt,
    AttemptRange,
    DeadLetter,
    EntryId,
    EntryRef,
    FeedId,
    Poll,
    PollOutcome,
    PollReason,
    Position,
    Record,
    RecordKind,
    RetryingSubscription,
    SelectedSubscription,
    StoredFeed,
    Subscription,
    SubscriptionFilter,
    SubscriptionId,
    SubscriptionSort,
)

SHOWN_SUBSCRIBERS: Final = 10
SHOWN_RECORDS: Final = 10
"""The first records that tell of an entry: only their deliveries are shown."""
SHOWN_ATTEMPTS: Final = 20
"""The last attempts at a record for one subscription."""
NOTED_WITHIN: Final = timedelta(seconds=60)
"""The longest time between a poll's answer and the commit of what it found."""
MOST_RECORDS: Final = 5_000
"""Records examined for one part of a page of committed entries, of the wanted feed if
there is one; most may tell of no entries. Without words, and not by delay, a page is
one part."""
RECORD_PAGE: Final = 500
MOST_RANKED: Final = 500
"""Entries among which those with the longest delays are found."""
RANKED_AT_ONCE: Final = 100
SOUGHT_RECORDS: Final = 2_000
"""Records of its feed in which an entry is looked for."""
PROBED: Final = 100
"""Records of the feed that are read to see how far new entries have come."""
OUT_OF_ORDER: Final = timedelta(seconds=10)
"""How far records may be out of order in the log, by the time they were found."""
_TOLD: Final = frozenset({RecordKind.ENTRIES, RecordKind.UPDATED})
_BROUGHT: Final = frozenset({PollReason.PUSHED, PollReason.PUBLISHED})
_FINDING: Final = frozenset({PollOutcome.FIRST, PollOutcome.NEW, PollOutcome.CHANGED})


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryDelivery:
    """``over_since``: when the subscription ended; None if it has not."""

    subscription: Subscription
    attempt: Attempt
    over_since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryReport:
    """An entry. ``records``: those that tell of it, the earliest first. ``poll``: the
    one that saw it. They are empty or None if the log or the history no longer has
    them. ``polls``: all of its feed that are kept, the latest first. ``deliveries``:
    those to the first subscribers of the feed, and to the latest whose subscriptions
    are over; ``given_up``: what these are not sent any more, unless somebody has it
    sent again; ``waiting``: those that are retried and still lack the last of the
    records."""

    feed: StoredFeed
    id: EntryId
    entry: Entry
    revision: int
    is_deleted: bool
    records: tuple[Record, ...]
    poll: Poll | None
    polls: tuple[Poll, ...]
    deliveries: tuple[EntryDelivery, ...]
    given_up: tuple[DeadLetter, ...]
    waiting: tuple[RetryingSubscription, ...]
    has_more_subscribers: bool
    has_more_ended: bool

    @property
    def published(self) -> datetime | None:
        return self.entry.published or self.entry.updated

    @property
    def outcomes(self) -> list[EntryDelivery | DeadLetter]:
        """Deliveries, and what was given up, in the order of time."""
        return sorted([*self.deliveries, *self.given_up], key=_moment_of)

    @property
    def believed(self) -> datetime | None:
        """When the entry was published, if the hub believes its date; if its records
        are no longer known, what the date says."""
        if not self.records:
            return self.published
        return publication_of(self.entry, self.published, self.records[0].at)

    @property
    def polls_without(self) -> tuple[Poll, ...]:
        """Those that were answered between its publication and the poll that saw it,
        the latest first: its publisher did not show it yet. None of a site that took
        several visits, since each has a part of it."""
        since, seen = self.believed, self.poll
        if since is None or seen is None or seen.reason is PollReason.CONTINUED:
            return ()
        return tuple(
            each
            for each in self.polls
            if each.at < seen.at
            and each.at - timedelta(milliseconds=each.milliseconds) > since
            and not each.outcome.is_failure
            and each.reason not in _BROUGHT
        )


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


class EntryReportService:
    def __init__(
        self,
        storage: Storage,
        metrics: Metrics | None = None,
        times: LateTimes | None = None,
    ) -> None:
        self._storage = storage
        self._times = times
        self._freshness = (metrics or Metrics()).freshness

    async def committed(
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

    async def get(self, entry_id: EntryId) -> EntryReport:
        """The way of an entry. Raises `NotFound`, also if its feed was removed."""
        stored = next(iter(await self._storage.log.entries([entry_id])), None)
        if stored is None:
            raise NotFound("entry", entry_id)
        feed_id = stored.feed_id
        feed = await existing_feed(self._storage.feeds, feed_id)
        entry = unpack(stored.body, Entry)
        records = await records_of(self._storage.log, feed_id, entry_id)
        present, has_more = await self._subscribers(
            SubscriptionFilter(feed_id=feed_id), SubscriptionSort.ID
        )
        ended, has_more_ended = await self._subscribers(
            SubscriptionFilter(feed_id=feed_id, health=ENDED_SUBSCRIPTIONS),
            SubscriptionSort.LAST_ID,
        )
        ids = [each.subscription.id for each in (*present, *ended)]
        polls = await self._storage.feeds.polls(feed_id)
        return EntryReport(
            feed=feed,
            id=entry_id,
            entry=entry,
            revision=stored.revision,
            is_deleted=stored.deleted,
            records=tuple(records),
            poll=_poll_of(records, polls),
            polls=tuple(polls),
            deliveries=(
                *await self._deliveries(records, present),
                *await self._deliveries(records, ended, are_over=True),
            ),
            given_up=tuple(await self._given_up(records, ids)),
            waiting=tuple(await self._waiting(records, present)),
            has_more_subscribers=has_more,
            has_more_ended=has_more_ended,
        )

    async def _subscribers(
        self, wanted: SubscriptionFilter, sort: SubscriptionSort
    ) -> tuple[Sequence[SelectedSubscription], bool]:
        """The first of the wanted subscriptions, and whether there may be more."""
        page = await self._storage.subscription_selections.page(
            wanted, sort, after=None, limit=SHOWN_SUBSCRIBERS, has_total=False
        )
        return page.subscriptions, page.next is not None

    async def _deliveries(
        self,
        records: Sequence[Record],
        selected: Sequence[SelectedSubscription],
        *,
        are_over: bool = False,
    ) -> list[EntryDelivery]:
        if not records:
            return []
        attempts = self._storage.deliveries.attempts
        found = [
            EntryDelivery(
                subscription=each.subscription,
                attempt=attempt,
                over_since=each.condition.since if are_over else None,
            )
            for each in selected
            for record in records[:SHOWN_RECORDS]
            for attempt in reversed(
                await attempts(
                    each.subscription.id,
                    SHOWN_ATTEMPTS,
                    AttemptRange(position=record.position),
                )
            )
        ]
        return found

    async def _given_up(
        self, records: Sequence[Record], ids: Sequence[SubscriptionId]
    ) -> list[DeadLetter]:
        return await self._storage.deliveries.dead_letters_of(
            ids, [each.position for each in records]
        )

    async def _waiting(
        self, records: Sequence[Record], selected: Sequence[SelectedSubscription]
    ) -> list[RetryingSubscription]:
        if not records:
            return []
        retried = [
            await self._storage.deliveries.retrying_subscription(each.subscription.id)
            for each in selected
        ]
        return [each for each in retried if each and each.lacks(records[-1].position)]


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


def _poll_of(records: Sequence[Record], polls: Sequence[Poll]) -> Poll | None:
    """The poll that brought the first of the records; None if it is not known."""
    if not records:
        return None
    committed = records[0].at
    near = [
        poll
        for poll in polls
        if poll.outcome in _FINDING and abs(poll.at - committed) <= NOTED_WITHIN
    ]
    return min(near, key=lambda poll: abs(poll.at - committed), default=None)


def _moment_of(outcome: EntryDelivery | DeadLetter) -> datetime:
    return outcome.at if isinstance(outcome, DeadLetter) else outcome.attempt.at


def _wanted(record: Record, since: datetime, until: datetime) -> Sequence[EntryRef]:
    """The new and updated entries of a record, if it is in the span of time."""
    is_told = record.kind in _TOLD and record.source is None
    return record.entries if is_told and since <= record.at < until else ()


def _done_of(record: Record, cursor: EntryCursor | None) -> int:
    """How many of the record's entries were on the previous page."""
    is_begun = cursor is not None and cursor.position == record.position
    return cursor.number if cursor and is_begun else 0


# --- the records of an entry ---

# The log knows what a record tells, not which records tell of an entry. New entries of
# a feed have rising ids, in the order of its records, so the first record of an entry
# is found by halving the log, whatever the dates in the feed say.


async def records_of(
    log: LogStore, feed_id: FeedId, entry_id: EntryId, most: int = SOUGHT_RECORDS
) -> list[Record]:
    """The records that tell of an entry, the oldest first, out of the ``most`` of its
    feed from its first one on; none if that is no longer in the log."""
    begin = await _place_before(log, feed_id, entry_id, most)
    records = await log.records(after=begin, limit=most, feed_id=feed_id)
    return [each for each in records if _tells_of(each, entry_id)]


async def _place_before(
    log: LogStore, feed_id: FeedId, entry_id: EntryId, most: int
) -> Position:
    """A place before all records of the entry, with few others between."""
    low, high = 0, int((await log.end()).position)
    while high - low > most // 2:
        middle = (low + high) // 2
        found = await _next_new(log, feed_id, Position(middle))
        if found is None or found[1] > entry_id:
            high = middle
        elif found[1] == entry_id:
            return Position(found[0] - 1)
        else:
            low = max(middle, found[0] - 1)
    return Position(low)


async def _next_new(
    log: LogStore, feed_id: FeedId, after: Position
) -> tuple[Position, EntryId] | None:
    """The next record with a new entry, and the first of them; None if there is none
    among the next records of the feed."""
    for record in await log.records(after=after, limit=PROBED, feed_id=feed_id):
        new = [ref.entry_id for ref in record.entries if ref.revision == 1]
        if new:
            return record.position, min(new)
    return None


def _tells_of(record: Record, entry_id: EntryId) -> bool:
    return any(ref.entry_id == entry_id for ref in record.entries)
