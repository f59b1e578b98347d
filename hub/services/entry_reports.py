"""The way of an entry: when it was published, which poll saw it, when it was
committed, and who was sent it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from hub.core.status.freshness import publication_of
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
    FeedId,
    Poll,
    PollOutcome,
    PollReason,
    Position,
    Record,
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
SOUGHT_RECORDS: Final = 2_000
"""Records of its feed in which an entry is looked for."""
PROBED: Final = 100
"""Records of the feed that are read to see how far new entries have come."""
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


class EntryReportService:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage

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
