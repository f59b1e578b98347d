"""Lists of deliveries, by what became of them: given up, retried, failed, or accepted
at the first try."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from hub.services.delivery_reports import DeliveryReportService, LostEntries
from storage.contract import Storage
from storage.records import (
    AttemptFilter,
    DeadLetter,
    FailedAttempt,
    RetryingSubscription,
    SentChunk,
    StoredFeed,
    SubscriptionId,
    UndeliveredFilter,
    UndeliveredOutcome,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UndeliveredRecords:
    """What callbacks lack: ``retrying`` subscriptions by id, and ``dead_letters`` by
    id. ``lost``: what these are of, by their ids, as far as it is known."""

    retrying: tuple[RetryingSubscription, ...] = ()
    dead_letters: tuple[DeadLetter, ...] = ()
    lost: Mapping[int, LostEntries] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRequests:
    """A page of failed requests, the latest first. ``next``: time and id of the last of
    them, None if this is the last page. ``has_more``: there are more than ``total``."""

    requests: tuple[FailedAttempt, ...] = ()
    next: tuple[datetime, int] | None = None
    total: int = 0
    has_more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SentReport:
    """Callbacks that a record was sent to together; ``feed`` None: the feed was
    purged."""

    chunk: SentChunk
    feed: StoredFeed | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTries:
    """A page of what was sent to callbacks at the first try, the latest first.
    ``next``: the id of the last of them, None if this is the last page.

    ``is_known`` False: the hub cannot tell which of them match, since it keeps them by
    topic and time alone.
    """

    sent: tuple[SentReport, ...] = ()
    next: int | None = None
    is_known: bool = True


class DeliveryListService:
    def __init__(self, storage: Storage, reports: DeliveryReportService) -> None:
        self._deliveries = storage.deliveries
        self._feeds = storage.feeds
        self._reports = reports

    async def undelivered(
        self,
        wanted: UndeliveredFilter,
        *,
        retrying_after: int = 0,
        dead_letters_after: int = 0,
        limit: int,
    ) -> UndeliveredRecords:
        """Up to ``limit`` retrying subscriptions and as many dead letters, those behind
        these ids."""
        retrying, dead_letters = list[RetryingSubscription](), list[DeadLetter]()
        if wanted.outcome is not UndeliveredOutcome.GIVEN_UP:
            retrying = await self._deliveries.retrying(
                after=SubscriptionId(retrying_after), limit=limit, wanted=wanted
            )
        if wanted.outcome is not UndeliveredOutcome.RETRIED:
            dead_letters = await self._deliveries.dead_letters(
                after=dead_letters_after, limit=limit, wanted=wanted
            )
        return UndeliveredRecords(
            retrying=tuple(retrying),
            dead_letters=tuple(dead_letters),
            lost=await self._reports.lost_entries(dead_letters),
        )

    async def failed(
        self,
        wanted: AttemptFilter,
        *,
        before: tuple[datetime, int] | None,
        limit: int,
        most_counted: int,
    ) -> FailedRequests:
        """Failed requests of all subscriptions, without their details."""
        found = await self._deliveries.failed_attempts(
            wanted, limit=limit, before=before
        )
        total = await self._deliveries.count_failed_attempts(wanted, most_counted + 1)
        last = found[-1].attempt if len(found) == limit else None
        return FailedRequests(
            requests=tuple(found),
            next=(last.at, last.id) if last else None,
            total=min(total, most_counted),
            has_more=total > most_counted,
        )

    async def sent(
        self, wanted: AttemptFilter, *, before: int | None, limit: int
    ) -> FirstTries:
        """What was sent to callbacks at the first try; with a topic only what its feed
        had to tell. ``before``: the id of the last one on the previous page."""
        if wanted.host or wanted.statuses or wanted.subscription_id:
            return FirstTries(is_known=False)
        topic = wanted.topic
        feed = None if topic is None else await self._feeds.find(topic)
        if topic is not None and feed is None:
            return FirstTries()
        chunks = await self._deliveries.sent_chunks(
            limit=limit,
            before=before,
            feed_id=feed.id if feed else None,
            since=wanted.since,
            until=wanted.until,
        )
        feeds = await self._feeds.several({each.feed_id for each in chunks})
        return FirstTries(
            sent=tuple(
                SentReport(chunk=each, feed=feeds.get(each.feed_id)) for each in chunks
            ),
            next=chunks[-1].id if len(chunks) == limit else None,
        )
