"""The way of one entry: when it was published, by which poll it was seen, when it was
committed, and who was sent it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from hub.services.feed_registration import existing_feed
from protocols.model import Entry
from storage.contract import Storage
from storage.errors import NotFound
from storage.packing import unpack
from storage.records import (
    Attempt,
    AttemptRange,
    EntryId,
    FeedId,
    Poll,
    PollOutcome,
    Position,
    Record,
    StoredFeed,
    Subscription,
    SubscriptionFilter,
    SubscriptionSort,
)

SOUGHT_RECORDS: Final = 2_000
"""Of its feed, from its publication on, among which an entry is looked for."""
SHOWN_SUBSCRIBERS: Final = 10
SOUGHT_ATTEMPTS: Final = 100
SENT_WITHIN: Final = timedelta(hours=1)
"""After its commit: in which requests are looked for that told of it."""
NOTED_WITHIN: Final = timedelta(seconds=60)
"""Between a poll's answer and the commit of what it found."""
_FINDING: Final = frozenset({PollOutcome.FIRST, PollOutcome.NEW, PollOutcome.CHANGED})


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryDelivery:
    subscription: Subscription
    attempt: Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryReport:
    """``records`` that tell of it, the first that was found first, and the ``poll``
    that saw it: None where the log or the history of polls has it no more.
    ``deliveries`` are those to the first subscribers of the feed."""

    feed: StoredFeed
    id: EntryId
    entry: Entry
    revision: int
    is_deleted: bool
    records: tuple[Record, ...]
    poll: Poll | None
    deliveries: tuple[EntryDelivery, ...]
    has_more_subscribers: bool

    @property
    def published(self) -> datetime | None:
        return self.entry.published or self.entry.updated


class EntryReportService:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def get(self, entry_id: EntryId) -> EntryReport:
        """Raises `NotFound`, also if its feed was removed."""
        stored = next(iter(await self._storage.log.entries([entry_id])), None)
        if stored is None:
            raise NotFound("entry", entry_id)
        feed_id = stored.feed_id
        feed = await existing_feed(self._storage.feeds, feed_id)
        entry = unpack(stored.body, Entry)
        records = await self._records(feed_id, entry_id, entry)
        subscribers = await self._storage.subscription_selections.page(
            SubscriptionFilter(feed_id=feed_id),
            SubscriptionSort.ID,
            after=None,
            limit=SHOWN_SUBSCRIBERS,
            has_total=False,
        )
        subscriptions = [each.subscription for each in subscribers.subscriptions]
        return EntryReport(
            feed=feed,
            id=entry_id,
            entry=entry,
            revision=stored.revision,
            is_deleted=stored.deleted,
            records=tuple(records),
            poll=await self._poll(feed_id, records),
            deliveries=tuple(await self._deliveries(records, subscriptions)),
            has_more_subscribers=subscribers.next is not None,
        )

    async def _records(
        self, feed_id: FeedId, entry_id: EntryId, entry: Entry
    ) -> list[Record]:
        log = self._storage.log
        published = entry.published or entry.updated
        after = await log.last_before(feed_id, published) if published else Position(0)
        looked_at = await log.records(
            after=after, limit=SOUGHT_RECORDS, feed_id=feed_id
        )
        return [
            record
            for record in looked_at
            if any(ref.entry_id == entry_id for ref in record.entries)
        ]

    async def _poll(self, feed_id: FeedId, records: Sequence[Record]) -> Poll | None:
        """The one that brought the first of the records."""
        if not records:
            return None
        committed = records[0].at
        near = [
            poll
            for poll in await self._storage.feeds.polls(feed_id)
            if poll.outcome in _FINDING and abs(poll.at - committed) <= NOTED_WITHIN
        ]
        return min(near, key=lambda poll: abs(poll.at - committed), default=None)

    async def _deliveries(
        self, records: Sequence[Record], subscriptions: Sequence[Subscription]
    ) -> list[EntryDelivery]:
        if not records:
            return []
        positions = {record.position for record in records}
        wanted = AttemptRange(since=records[0].at, until=records[-1].at + SENT_WITHIN)
        return [
            EntryDelivery(subscription=each, attempt=attempt)
            for each in subscriptions
            for attempt in await self._storage.deliveries.attempts(
                each.id, SOUGHT_ATTEMPTS, wanted
            )
            if attempt.position in positions
        ]
