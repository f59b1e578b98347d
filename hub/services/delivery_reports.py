"""Reports of requests to callbacks: what each one told of; for a failed one also where
it failed, the answer, and the request.

The request is not stored but rendered again, from the present entries, and signed
again. Its stored size and checksum show whether it equals what was sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from zlib import crc32

from msgspec.structs import replace

from hub.delivery.notifications import Notifications, NotRenderable
from hub.delivery.webhook import delivery_of, request_of
from hub.housekeeping import ATTEMPTS_KEPT
from hub.http import Request
from hub.http.exchange import target_of
from hub.http.network_errors import NetworkError
from hub.runtime.callback_durations import CallbackDuration, by_callback
from hub.runtime.clock import Clock
from hub.runtime.metrics import Metrics
from hub.runtime.offloading import run_in_thread
from protocols.model import Entry
from protocols.websub.delivery import notification_id
from storage.contract import Storage
from storage.errors import NotFound
from storage.packing import unpack
from storage.records import (
    AccountId,
    Attempt,
    AttemptRange,
    DeadLetter,
    EntryId,
    FailedAttempt,
    FeedId,
    FeedState,
    Position,
    Record,
    RecordKind,
    SelectedSubscription,
    SentRequest,
    StoredFeed,
    Subscription,
    SubscriptionCondition,
    SubscriptionFilter,
    SubscriptionHealth,
    SubscriptionId,
    SubscriptionSort,
    SubscriptionState,
)
from storage.subscription_filter import is_due, wanted_entries

PAGE = 100
"""Records read at once; no request tells of more."""
COUNTED = 20
"""Records of a dead letter that are read to tell what it is of."""
MOST_DESCRIBED = 100
"""Dead letters that are described at once."""
SHOWN_ENTRIES = 100
"""Entries of a request that are named."""
SHOWN_TITLES = 3
MOST_TITLED = 2 * SHOWN_TITLES
"""Records of a dead letter whose titles are read: entries may be deleted since."""
LATEST_CHUNKS = 200
"""Chunks of before the hub's start that are read to find slow callbacks."""
LATEST_ATTEMPTS = 2_000
"""The same of failures and catch-ups."""
REQUEST_BYTES = 100
"""What one of these takes, about."""
NOT_KEPT = "requests are kept only for the latest failures of each subscription"
TRIMMED = "the log no longer has its records"
NOTHING_LEFT = "its entries have been deleted"
NOT_OPEN = "the subscription has ended, or its account may no longer read the feed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedRequest:
    """A request. ``is_same``: its body equals byte for byte what was sent; else it is
    as it would be sent now, signed with the present time."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes
    is_same: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldEntry:
    """``id`` None: it is an event, and ``title`` its type."""

    id: EntryId | None
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldEntries:
    """What records tell a callback of: how many entries and events, and the first
    `SHOWN_ENTRIES` of them; entries that were deleted or hidden since are counted only.

    ``total`` None: that is not known, as the log no longer has the records, or they may
    not be read.
    """

    entries: tuple[ToldEntry, ...] = ()
    total: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryReport:
    """A failed request, and what it ``told`` of. ``request`` None: ``reason`` says why
    it cannot be shown."""

    failed: FailedAttempt
    told: ToldEntries = ToldEntries()
    request: RenderedRequest | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptReport:
    """A request, and how many ``entries`` it told of; ``title`` is that of the first.

    ``entries`` 0: it told of none, they are deleted, or ``kind``, that of its record,
    is None: the log no longer has it, or the account may no longer read the feed.
    ``entry_id``: of the first, None for an event.
    """

    attempt: Attempt
    title: str = ""
    entries: int = 0
    entry_id: EntryId | None = None
    kind: RecordKind | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowCallback:
    subscription: Subscription
    condition: SubscriptionCondition
    duration: CallbackDuration


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowestCallbacks:
    """The slowest callbacks, by those of their requests ``since`` then that are
    remembered."""

    callbacks: tuple[SlowCallback, ...]
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LostEntries:
    """What is known of a dead letter's content: how many ``entries``, and the
    ``titles`` of the first. ``has_more``: only its first `COUNTED` records are read."""

    entries: int
    titles: tuple[str, ...]
    has_more: bool


_ReadRecords = dict[tuple[FeedId, Position], tuple[list[Record], Position | None]]
"""Records of feeds from a position on that may be read; and the position of the last if
there may be more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _LostRecords:
    """Records of a dead letter; see `LostEntries`."""

    records: list[Record]
    has_more: bool

    @property
    def entries(self) -> int:
        return sum(len(each.entries) for each in self.records)


class DeliveryReportService:
    def __init__(
        self, storage: Storage, hub_url: str, metrics: Metrics, clock: Clock
    ) -> None:
        self._storage = storage
        self._durations = metrics.callback_durations
        self._clock = clock
        self._started = clock.now()
        self._known_since: datetime | None = None
        self._reading_earlier = asyncio.Lock()
        self._hub_url = hub_url
        self._notifications = Notifications(storage.log, hub_url)

    async def get(
        self, attempt_id: int, *, account: AccountId | None = None
    ) -> DeliveryReport:
        """A failed request. Raises `NotFound`, also if it belongs to another account
        than the given one."""
        failed = await self._storage.deliveries.failed_attempt(attempt_id)
        if failed is None:
            raise NotFound("failed delivery", attempt_id)
        whose = failed.attempt.subscription_id
        subscription = await self._storage.subscriptions.get(whose)
        if subscription is None or account not in (None, subscription.account):
            raise NotFound("failed delivery", attempt_id)
        if account is not None and not await self._is_open(subscription):
            return DeliveryReport(failed=failed, reason=NOT_OPEN)
        return await self._report(failed, subscription)

    async def attempts(
        self,
        subscription_id: SubscriptionId,
        wanted: AttemptRange,
        limit: int,
        *,
        account: AccountId | None = None,
    ) -> list[AttemptReport]:
        """Requests to the callback of a subscription, newest first, with what they told
        of.

        Raises `NotFound`, also if it belongs to another account than the given one.
        """
        subscription = await self._storage.subscriptions.get(subscription_id)
        if subscription is None or account not in (None, subscription.account):
            raise NotFound("subscription", subscription_id)
        found = await self._storage.deliveries.attempts(subscription_id, limit, wanted)
        return await self.attempts_of(subscription, found, account=account)

    async def attempts_of(
        self,
        subscription: Subscription,
        attempts: Sequence[Attempt],
        *,
        account: AccountId | None = None,
    ) -> list[AttemptReport]:
        """What requests told of that are known already."""
        if account is not None and not await self._is_open(subscription):
            return [AttemptReport(attempt=each) for each in attempts]
        told = await self._notified_records(attempts, subscription)
        titles = await self._titles(list(told.values())) if told else {}
        return [_attempt_report(each, told, titles) for each in attempts]

    async def told_of(
        self,
        subscription_id: SubscriptionId,
        position: Position,
        *,
        account: AccountId | None = None,
    ) -> ToldEntries:
        """What a record of its feed tells the callback of a subscription of; not known
        if the account may no longer read the feed.

        Raises `NotFound`, also if it belongs to another account than the given one.
        """
        subscription = await self._storage.subscriptions.get(subscription_id)
        if subscription is None or account not in (None, subscription.account):
            raise NotFound("subscription", subscription_id)
        if account is not None and not await self._is_open(subscription):
            return ToldEntries()
        records = await self._records(subscription.feed_id, (position,))
        return await self._told(records, subscription)

    async def kept_from(self, subscription_id: SubscriptionId) -> datetime | None:
        """From when on all failures and catch-ups of a subscription are kept; None if
        none made room for later ones."""
        return await self._storage.deliveries.attempts_kept_from(subscription_id)

    async def slowest(self, limit: int) -> SlowestCallbacks:
        """The subscriptions whose callbacks typically take longest to answer, by their
        latest requests; those that are always fast are left out."""
        since = await self._read_earlier()
        slowest = self._durations.slowest(limit)
        known = await self._subscriptions([each.subscription_id for each in slowest])
        found = list[SlowCallback]()
        for each in slowest:
            selected = known.get(each.subscription_id)
            if selected and selected.subscription.state is SubscriptionState.ACTIVE:
                found.append(
                    SlowCallback(
                        subscription=selected.subscription,
                        condition=selected.condition,
                        duration=each,
                    )
                )
            else:
                self._durations.forget([each.subscription_id])
        return SlowestCallbacks(callbacks=tuple(found), since=since)

    async def _read_earlier(self) -> datetime:
        """Read, once, the requests that were over before the hub started; returns since
        when all were known."""
        async with self._reading_earlier:
            if self._known_since is None:
                kept_since = self._clock.now() - ATTEMPTS_KEPT
                found = await self._storage.deliveries.latest_requests(
                    self._started, chunks=LATEST_CHUNKS, attempts=LATEST_ATTEMPTS
                )
                sorting = partial(by_callback, found.requests)
                size = len(found.requests) * REQUEST_BYTES
                self._durations.add_earlier(await run_in_thread(sorting, size))
                self._known_since = found.since or min(self._started, kept_since)
            return self._known_since

    async def _subscriptions(
        self, ids: Collection[SubscriptionId]
    ) -> dict[SubscriptionId, SelectedSubscription]:
        """The subscriptions with these ids, ended ones included."""
        if not ids:
            return {}
        page = await self._storage.subscription_selections.page(
            SubscriptionFilter(ids=tuple(ids), health=tuple(SubscriptionHealth)),
            SubscriptionSort.ID,
            after=None,
            limit=len(ids),
            has_total=False,
        )
        return {each.subscription.id: each for each in page.subscriptions}

    async def lost_entries(
        self, dead_letters: Sequence[DeadLetter], *, account: AccountId | None = None
    ) -> dict[int, LostEntries]:
        """What the first `MOST_DESCRIBED` of the dead letters are of, by their ids;
        what the log no longer has, or the given account may not read, is left out."""
        described = dead_letters[:MOST_DESCRIBED]
        known = await self._subscriptions({each.subscription_id for each in described})
        whose = {id: each.subscription for id, each in known.items()}
        if account is not None:
            whose = await self._open_ones(whose)
        lost, read = dict[int, _LostRecords](), _ReadRecords()
        for each in described:
            if subscription := whose.get(each.subscription_id):
                lost[each.id] = await self._lost(each, subscription, read)
        titles = await self._titles(
            [record for each in lost.values() for record in each.records[:MOST_TITLED]]
        )
        return {
            id: LostEntries(
                entries=each.entries,
                titles=_first_titles(each.records, titles),
                has_more=each.has_more,
            )
            for id, each in lost.items()
            if each.entries
        }

    async def _lost(
        self, dead_letter: DeadLetter, subscription: Subscription, read: _ReadRecords
    ) -> _LostRecords:
        feed_id, place = subscription.feed_id, (subscription.feed_id, dead_letter.first)
        if place not in read:  # many callbacks often lack the same
            found = await self._storage.log.records(
                after=Position(dead_letter.first - 1), limit=COUNTED, feed_id=feed_id
            )
            end = found[-1].position if len(found) == COUNTED else None
            read[place] = await self._readable(found, feed_id), end
        records, end = read[place]
        within = [each for each in records if each.position <= dead_letter.last]
        due = [each for each in within if is_due(each, subscription)]
        return _LostRecords(
            records=_as_sent(due, subscription),
            has_more=end is not None and end <= dead_letter.last,
        )

    async def _open_ones(
        self, subscriptions: Mapping[SubscriptionId, Subscription]
    ) -> dict[SubscriptionId, Subscription]:
        """Those of the subscriptions that `_is_open` names."""
        ids = {each.feed_id for each in subscriptions.values()}
        feeds = await self._storage.feeds.several(ids)
        return {
            id: each
            for id, each in subscriptions.items()
            if _is_open_to(each, feeds.get(each.feed_id))
        }

    async def _notified_records(
        self, attempts: Sequence[Attempt], subscription: Subscription
    ) -> dict[Position, Record]:
        """The records that attempts told of, by position, as the subscription is sent
        them. A callback is sent nearly all records of its feed, so one reading of the
        log finds most of them; it is read again where attempts lie far apart. Records
        of a track query are included only if its owner may read the feed now."""
        records, feed_id = list[Record](), subscription.feed_id
        upto = Position(0)
        for position in sorted({each.position for each in attempts}):
            if position <= upto:
                continue
            records += await self._storage.log.records(
                after=Position(position - 1), limit=PAGE, feed_id=feed_id
            )
            upto = max(position, records[-1].position if records else position)
        readable = await self._readable(records, feed_id)
        return {each.position: each for each in _as_sent(readable, subscription)}

    async def _readable(
        self, records: Sequence[Record], feed_id: FeedId
    ) -> list[Record]:
        """The records without those that come from a feed that may not be read."""
        sources = {each.source for each in records if each.source is not None}
        hidden = {
            each
            for each in sources
            if await self._storage.log.source(each, feed_id) is None
        }
        return [each for each in records if each.source not in hidden]

    async def _titles(self, records: Sequence[Record]) -> dict[EntryId, str]:
        """The title of the first entry of each record."""
        ids = [each.entries[0].entry_id for each in records if each.entries]
        return await self._titles_of(list(dict.fromkeys(ids)))

    async def _titles_of(self, ids: Sequence[EntryId]) -> dict[EntryId, str]:
        """The titles of those of the entries that are neither deleted nor hidden."""
        return {
            each.id: _title(unpack(each.body, Entry))
            for each in await self._storage.log.entries(ids)
            if not each.deleted and not each.unlisted
        }

    async def _is_open(self, subscription: Subscription) -> bool:
        """Whether the subscription's account may still see the feed's content: a
        request is rendered from the entries as they are now."""
        feed = await self._storage.feeds.get(subscription.feed_id)
        return _is_open_to(subscription, feed)

    async def _report(
        self, failed: FailedAttempt, subscription: Subscription
    ) -> DeliveryReport:
        details, position = failed.attempt.details, failed.attempt.position
        positions = details.request.records if details else (position,)
        records = await self._records(subscription.feed_id, positions)
        told = await self._told(records, subscription)
        if details is None:
            return DeliveryReport(failed=failed, told=told, reason=NOT_KEPT)
        if len(records) < len(positions):
            return DeliveryReport(failed=failed, told=told, reason=TRIMMED)
        request = await self._render(records, subscription, position, details.request)
        reason = "" if request else NOTHING_LEFT
        return DeliveryReport(failed=failed, told=told, request=request, reason=reason)

    async def _told(
        self, records: Sequence[Record], subscription: Subscription
    ) -> ToldEntries:
        readable = await self._readable(records, subscription.feed_id)
        if not readable:
            return ToldEntries()
        records = _as_sent(readable, subscription)
        events = [
            ToldEntry(id=None, title=each.event.type) for each in records if each.event
        ]
        ids = list(
            dict.fromkeys(ref.entry_id for each in records for ref in each.entries)
        )
        titles = await self._titles_of(ids[:SHOWN_ENTRIES])
        entries = [ToldEntry(id=id, title=titles[id]) for id in ids if id in titles]
        return ToldEntries(entries=(*events, *entries), total=len(events) + len(ids))

    async def _records(
        self, feed_id: FeedId, positions: Sequence[Position]
    ) -> list[Record]:
        """Those of the records that are still in the log."""
        wanted, found = set(positions), list[Record]()
        after = Position(min(positions) - 1)
        while True:
            page = await self._storage.log.records(
                after=after, limit=PAGE, feed_id=feed_id
            )
            found += [each for each in page if each.position in wanted]
            if len(page) < PAGE or page[-1].position >= max(positions):
                return found
            after = page[-1].position

    async def _render(
        self,
        records: Sequence[Record],
        subscription: Subscription,
        position: Position,
        sent: SentRequest,
    ) -> RenderedRequest | None:
        try:
            document = await self._notifications.document(records, subscription)
        except NotRenderable:
            return None
        if document is None:
            return None
        epoch = (await self._storage.log.end()).epoch
        addressed = partial(
            delivery_of,
            subscription,
            document,
            sent.credits,
            id=notification_id(epoch, position, subscription.id),
            hub_url=self._hub_url,
            retries=sent.retries,
            missed=sent.missed,
        )
        delivery = addressed(at=sent.at)
        body = delivery.body
        is_same = (len(body), crc32(body)) == (sent.size, sent.checksum)
        if not is_same:
            delivery = addressed(at=int(self._clock.now().timestamp()))
        return rendered_request(await request_of(delivery), is_same=is_same)


def _as_sent(records: Sequence[Record], subscription: Subscription) -> list[Record]:
    """The records with those of their entries only that the subscription is sent."""
    return [
        replace(each, entries=wanted_entries(each, subscription.updates))
        for each in records
    ]


def _is_open_to(subscription: Subscription, feed: StoredFeed | None) -> bool:
    if feed is None or feed.has_credentials or feed.state is FeedState.REMOVED:
        return False
    return subscription.state is SubscriptionState.ACTIVE


def _first_titles(
    records: Sequence[Record], titles: Mapping[EntryId, str]
) -> tuple[str, ...]:
    ids = dict.fromkeys(each.entries[0].entry_id for each in records if each.entries)
    return tuple(titles[id] for id in ids if id in titles)[:SHOWN_TITLES]


def _title(entry: Entry) -> str:
    return entry.title or entry.id


def _attempt_report(
    attempt: Attempt,
    told: Mapping[Position, Record],
    titles: Mapping[EntryId, str],
) -> AttemptReport:
    record = told.get(attempt.position)
    if record is None:
        return AttemptReport(attempt=attempt)
    if record.event is not None:
        return AttemptReport(
            attempt=attempt, title=record.event.type, entries=1, kind=record.kind
        )
    first = record.entries[0].entry_id if record.entries else None
    title = titles.get(first, "") if first is not None else ""
    return AttemptReport(
        attempt=attempt,
        title=title,
        entries=len(record.entries) if title else 0,
        entry_id=first,
        kind=record.kind,
    )


def rendered_request(request: Request, *, is_same: bool) -> RenderedRequest:
    return RenderedRequest(
        method=request.method,
        url=request.url,
        headers={**_authority(request.url), **request.headers},
        body=request.body or b"",
        is_same=is_same,
    )


def _authority(url: str) -> dict[str, str]:
    try:
        return {"Host": target_of(url).authority}
    except NetworkError:  # its URL cannot be requested
        return {}
