"""Test deliveries: one real, signed notification, sent while somebody waits.

A test delivery is marked as a test, changes nothing about a subscription, is not one of
its attempts, and is tried once. The address guard and the pace of callback hosts apply.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from hub.core.delivery.delivery_outcome import Verdict, verdict
from hub.core.status.event_messages import api_url_of, render_event_trial
from hub.delivery.digests import read_feed_document
from hub.delivery.failed_attempts import kept_answer, stage_of
from hub.delivery.notifications import NotificationBody, render_body
from hub.delivery.webhook import delivery_of, request_of
from hub.http import Answer, Network
from hub.http.network_errors import NetworkError
from hub.limits.host_limiter import HostLimiter, RequestKind
from hub.runtime.clock import Clock
from hub.runtime.offloading import run_in_thread
from hub.services.account_subscriptions import SubscriptionRequest, SubscriptionService
from hub.services.delivery_reports import RenderedRequest, rendered_request
from hub.services.feed_registration import FeedService
from hub.services.service_errors import Conflict, TooManyWaiting
from hub.services.topic_addresses import AddressCheck
from protocols.http import RequestStage
from protocols.model import Entry, Feed, Link, Notification, Status
from protocols.operational_events import types_of_topic
from protocols.superfeedr.json_notifications import JSON_TYPE
from protocols.urls import host_name
from protocols.websub.callbacks import read_callback
from protocols.websub.delivery import WebhookDelivery
from storage.contract import Storage
from storage.errors import NotFound
from storage.packing import unpack_bytes
from storage.records import (
    BEFORE_ALL,
    AccountId,
    CallbackAnswer,
    FeedId,
    Format,
    StoredFeed,
    Subscription,
    SubscriptionId,
    SubscriptionState,
    Updates,
)

AT_ONCE: Final = 8
LONGEST_TURN: Final = 10.0
"""Seconds for which a test waits at most for the turn of the callback's host."""
NO_SUBSCRIPTION: Final = SubscriptionId(0)
NO_FEED: Final = FeedId(0)


@dataclass(slots=True)
class _Progress:
    stage: RequestStage = RequestStage.QUEUED


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackTrial:
    """The result of a test delivery. ``status`` 0: there was no answer, and ``error``
    says why.

    ``stage`` says where a test that was not accepted failed. ``answer`` None: there was
    no answer, or it ``is_withheld``.
    """

    subscription: Subscription
    request: RenderedRequest
    status: int
    milliseconds: int
    error: str = ""
    stage: RequestStage | None = None
    answer: CallbackAnswer | None = None
    is_withheld: bool = False

    @property
    def is_delivered(self) -> bool:
        return verdict(self.status) is Verdict.DELIVERED


class CallbackTrialService:
    def __init__(
        self,
        storage: Storage,
        network: Network,
        clock: Clock,
        subscriptions: SubscriptionService,
        feeds: FeedService,
        addresses: AddressCheck,
        callbacks: HostLimiter,
        hub_url: str,
    ) -> None:
        """``callbacks``: sets the pace of requests to hosts of callbacks."""
        self._storage = storage
        self._network = network
        self._clock = clock
        self._subscriptions = subscriptions
        self._feeds = feeds
        self._addresses = addresses
        self._callbacks = callbacks
        self._hub_url = hub_url
        self._sending = asyncio.Semaphore(AT_ONCE)

    async def try_subscription(
        self, subscription_id: SubscriptionId, *, account: AccountId | None = None
    ) -> CallbackTrial:
        """Send a test delivery to the callback of a subscription. Raises `NotFound`,
        also if it belongs to another account than the given one, `Conflict`,
        `AddressRefused` and `TooManyWaiting`."""
        found, feed = await self._existing(subscription_id, account)
        return await self._try(found, feed)

    async def preview(
        self, subscription_id: SubscriptionId, *, account: AccountId | None = None
    ) -> RenderedRequest:
        """The request of a test delivery, which is not sent.

        Raises `NotFound`, also if the subscription belongs to another account than the
        given one, and `Conflict`.
        """
        found, feed = await self._existing(subscription_id, account)
        document = await self._document(found, feed)
        request = await request_of(self._delivery(found, document))
        return rendered_request(request, is_same=True)

    async def _existing(
        self, subscription_id: SubscriptionId, account: AccountId | None
    ) -> tuple[Subscription, StoredFeed | None]:
        found = await self._storage.subscriptions.get(subscription_id)
        if found is None or account not in (None, found.account):
            raise NotFound("subscription", subscription_id)
        if found.state is not SubscriptionState.ACTIVE:
            raise Conflict("the subscription has ended")
        return found, await self._storage.feeds.get(found.feed_id)

    async def try_callback(self, request: SubscriptionRequest) -> CallbackTrial:
        """Send a test delivery as a subscription made by this request would get it. For
        a topic that the hub does not know, its content is made up. Raises
        `InvalidValue`, `AddressRefused` and `TooManyWaiting`."""
        self._subscriptions.check(request)
        feed = await self._feeds.find(request.topic)
        return await self._try(self._imagined(request, feed), feed)

    def _imagined(
        self, request: SubscriptionRequest, feed: StoredFeed | None
    ) -> Subscription:
        return Subscription(
            id=NO_SUBSCRIPTION,
            account=request.account,
            topic=request.topic,
            feed_id=feed.id if feed else NO_FEED,
            callback=read_callback(request.callback),
            secret=request.secret,
            algorithm=request.algorithm,
            format=request.format or Format.JSON,
            updates=Updates.FRESH,
            batch=False,
            state=SubscriptionState.ACTIVE,
            from_position=BEFORE_ALL,
            lease_end=None,
            created_at=self._clock.now(),
            exhausted=False,
        )

    async def _try(
        self, subscription: Subscription, feed: StoredFeed | None
    ) -> CallbackTrial:
        await self._addresses.check_callback("callback", subscription.callback)
        document = await self._document(subscription, feed)
        if self._sending.locked():
            raise TooManyWaiting("too many test deliveries are running")
        async with self._sending:
            await self._wait_for_turn(subscription.callback)
            return await self._send(subscription, document)

    async def _wait_for_turn(self, callback: str) -> None:
        try:
            async with asyncio.timeout(LONGEST_TURN):
                await self._callbacks.wait(host_name(callback), RequestKind.TEST)
        except TimeoutError:
            raise TooManyWaiting(
                "too many requests are waiting for this callback"
            ) from None

    async def _send(
        self, subscription: Subscription, document: NotificationBody
    ) -> CallbackTrial:
        progress = _Progress()
        delivery = self._delivery(subscription, document)
        request = await request_of(delivery, progress)
        trial = CallbackTrial(
            subscription=subscription,
            request=rendered_request(request, is_same=True),
            status=0,
            milliseconds=0,
        )
        started = self._clock.monotonic()
        try:
            answer = await self._network.send(request)
        except NetworkError as error:
            elapsed = self._clock.monotonic() - started
            return replace(
                trial,
                status=error.status,
                milliseconds=round(elapsed * 1000),
                error=error.reason,
                stage=progress.stage,
            )
        return _answered(trial, answer)

    def _delivery(
        self, subscription: Subscription, document: NotificationBody
    ) -> WebhookDelivery:
        return delivery_of(
            subscription,
            document,
            None,
            # A new id: receivers drop an id that they have seen.
            id=f"test-{secrets.token_hex(8)}-{subscription.id}",
            at=int(self._clock.now().timestamp()),
            hub_url=self._hub_url,
            is_test=True,
        )

    async def _document(
        self, subscription: Subscription, feed: StoredFeed | None
    ) -> NotificationBody:
        """The newest entry of the topic; or the topic's own document, if it is kept and
        the subscription wants it. Only a notification can be marked as a test in its
        body."""
        if types_of_topic(subscription.topic):
            api_url, now = api_url_of(self._hub_url), self._clock.now()
            body = render_event_trial(subscription, now, api_url)
            return NotificationBody(JSON_TYPE, body)
        if subscription.format is Format.AS_IS and feed is not None:
            stored = await self._storage.log.body(feed.id)
            if stored is not None:
                body = await run_in_thread(lambda: unpack_bytes(stored.body))
                return NotificationBody(stored.content_type, body)
        told = None
        if feed is not None:
            told = await read_feed_document(
                self._storage,
                feed,
                topic=subscription.topic,
                hub_url=self._hub_url,
                count=1,
                has_unlisted=True,
            )
        if told is None or not told.entries:
            told = self._made_up(subscription, told)
        marked = msgspec.structs.replace(told, is_test=True)
        return render_body(marked, subscription.format)

    def _made_up(
        self, subscription: Subscription, told: Notification | None
    ) -> Notification:
        """A made-up document, for a topic without entries."""
        now = self._clock.now()
        sample = Entry(
            key="test",
            id=f"{self._hub_url}#test",
            title="A test entry",
            links=(Link(rel="alternate", href=subscription.topic, type="text/html"),),
            published=now,
            updated=now,
        )
        if told is not None:
            return msgspec.structs.replace(told, entries=(sample,))
        return Notification(
            topic=subscription.topic,
            hub=self._hub_url,
            status=Status(code=200, http="Test"),
            feed=Feed(updated=now),
            entries=(sample,),
        )


def _answered(trial: CallbackTrial, answer: Answer) -> CallbackTrial:
    is_delivered = verdict(answer.status) is Verdict.DELIVERED
    return replace(
        trial,
        status=answer.status,
        milliseconds=answer.milliseconds,
        error="" if is_delivered else f"answered {answer.status}",
        stage=None if is_delivered else stage_of(answer),
        answer=None if answer.is_exempt else kept_answer(answer),
        is_withheld=answer.is_exempt,
    )
