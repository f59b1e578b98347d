"""Digests: once a day the last entries of a feed, or an empty digest.

A subscriber that gets no digest for a day knows that something is wrong. Digests are
sent in addition to notifications, and neither replace nor delay them. A digest that
fails is sent again an hour later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog
from msgspec.structs import replace

from hub.core.status.feed_status import shown_status
from hub.delivery.notification_counter import NotificationCounter
from hub.delivery.notifications import render_body
from hub.delivery.webhook import delivery_of, request_of
from hub.http import Network
from hub.http.network_errors import NetworkError
from hub.publishing.local_topics import name_topic
from hub.runtime.clock import Clock
from hub.runtime.work_leases import WorkClaims
from protocols.model import Entry, Notification
from storage.contract import Storage
from storage.errors import StorageError
from storage.packing import unpack, unpack_head
from storage.records import (
    ControlEvent,
    DecisionsMissed,
    FeedState,
    PauseChanged,
    StoredFeed,
    Subscription,
    SubscriptionId,
    SubscriptionsEnded,
    WorkKind,
)


async def read_feed_document(
    storage: Storage,
    feed: StoredFeed,
    *,
    topic: str,
    hub_url: str,
    count: int,
    has_unlisted: bool,
) -> Notification:
    """The newest entries of a feed, up to ``count``, under the topic that was asked
    for.

    ``has_unlisted``: include entries that are kept out of public listings.
    """
    statistics = await storage.feed_statistics.get(feed.id)
    head = await storage.log.feed_head(feed.id)
    if feed.state is FeedState.TRACK:
        stored = await storage.log.latest_entries(feed.id, count)
    else:
        stored = await storage.entries.newest(
            [feed.id], limit=count, listed_only=not has_unlisted
        )
    return name_topic(
        Notification(
            topic=topic,
            hub=hub_url,
            status=shown_status(feed, statistics),
            feed=unpack_head(head),
            entries=tuple(unpack(each.body, Entry) for each in stored),
        )
    )


DAY: Final = timedelta(days=1)
AFTER_FAILURE: Final = timedelta(hours=1)
ENTRIES: Final = 10
POLL_SECONDS: Final = 30.0
AT_ONCE: Final = 16

log = structlog.get_logger()


class _Halts:
    """The subscriptions that are paused or end while their digests are made."""

    def __init__(self) -> None:
        self._halted: set[SubscriptionId] = set()
        self._due: frozenset[SubscriptionId] | None = None
        self._is_unknown = False

    def limit_to(self, due: Sequence[Subscription]) -> None:
        """Remember these subscriptions only, from now on."""
        self._due = frozenset(each.id for each in due)
        self._halted &= self._due

    def note(self, event: ControlEvent) -> None:
        """Note an end or a pause. A subscription resumed meanwhile waits for the next
        round."""
        match event:
            case SubscriptionsEnded(ids):
                self._add(ids)
            case PauseChanged(subscription_id, is_paused=True):
                self._add([subscription_id])
            case DecisionsMissed():
                self._is_unknown = True
            case _:
                pass

    def _add(self, ids: Sequence[SubscriptionId]) -> None:
        self._halted.update(ids if self._due is None else self._due.intersection(ids))

    def has(self, subscription: Subscription) -> bool:
        return self._is_unknown or subscription.id in self._halted


class Digests:
    def __init__(
        self,
        storage: Storage,
        network: Network,
        clock: Clock,
        hub_url: str,
        counter: NotificationCounter,
        claims: WorkClaims,
        *,
        tells_unlisted: bool = True,
    ) -> None:
        """``tells_unlisted``: include entries that are kept out of public listings."""
        self._claims = claims
        self._storage = storage
        self._network = network
        self._clock = clock
        self._hub_url = hub_url
        self._counter = counter
        self._tells_unlisted = tells_unlisted

    async def run(self) -> None:
        """Send the digests that are due, until cancelled."""
        while True:
            try:
                while await self.send_due() == AT_ONCE:
                    pass
            except StorageError as error:
                log.warning("digests_not_sent", error=str(error))
            await asyncio.sleep(POLL_SECONDS)

    async def send_due(self) -> int:
        """Send one round of at most `AT_ONCE` digests; returns how many were
        settled."""
        if not await self._claims.may_begin():
            return 0
        halts = _Halts()
        with self._storage.control.watch(halts.note):
            due = await self._storage.digests.due(self._clock.now(), AT_ONCE)
            halts.limit_to(due)
            ids = [each.id for each in due]
            lease_id, held = await self._claims.claim(WorkKind.DIGESTS, ids)
            async with (
                self._claims.renewed(WorkKind.DIGESTS, held, lease_id),
                asyncio.TaskGroup() as tasks,
            ):
                sending = [
                    tasks.create_task(self._send(each, lease_id, halts))
                    for each in due
                    if each.id in held
                ]
        return sum(each.result() for each in sending)

    async def _send(
        self, subscription: Subscription, lease_id: int, halts: _Halts
    ) -> bool:
        """Send one digest; False if the database failed, and the digest stays due."""
        now, digests = self._clock.now(), self._storage.digests
        has_failed = False
        try:
            is_sent = await self._try_to_post(subscription, halts, now)
            if is_sent or not halts.has(subscription):
                later = now + (DAY if is_sent else AFTER_FAILURE)
                await digests.settle(subscription.id, later, lease_id=lease_id)
                return True
        except StorageError as error:
            has_failed = True
            log.warning(
                "digest_not_sent", subscription=subscription.id, error=str(error)
            )
        # A paused subscription stays due until it is resumed.
        await self._claims.release(WorkKind.DIGESTS, [subscription.id], lease_id)
        return not has_failed

    async def _try_to_post(
        self, subscription: Subscription, halts: _Halts, now: datetime
    ) -> bool:
        """Post a digest; returns whether it was sent. Raises `StorageError`."""
        try:
            return await self._post(subscription, halts, now)
        except StorageError:
            raise
        except Exception:  # the content of a feed must not end the hub
            log.exception("digest_failed", subscription=subscription.id)
            return False

    async def _post(
        self, subscription: Subscription, halts: _Halts, now: datetime
    ) -> bool:
        feed = await self._storage.feeds.get(subscription.feed_id)
        if feed is None:
            return True
        found = await read_feed_document(
            self._storage,
            feed,
            topic=subscription.topic,
            hub_url=self._hub_url,
            count=ENTRIES,
            has_unlisted=self._tells_unlisted,
        )
        document = render_body(digest_of(found, now - DAY), subscription.format)
        seconds = int(now.timestamp())
        delivery = delivery_of(
            subscription,
            document,
            self._counter.take(subscription.account),
            id=f"digest-{seconds}-{subscription.id}",
            at=seconds,
            hub_url=self._hub_url,
        )
        request = await request_of(delivery)
        if halts.has(subscription):
            return False
        try:
            status = (await self._network.send(request)).status
        except NetworkError as error:
            status = error.status
        return 200 <= status < 300


def digest_of(found: Notification, since: datetime) -> Notification:
    """The notification as a digest, with the entries dated after ``since`` only."""

    def is_recent(entry: Entry) -> bool:
        at = entry.updated or entry.published
        return at is not None and at > since

    return replace(
        found,
        entries=tuple(filter(is_recent, found.entries or ())),
        is_digest=True,
    )
