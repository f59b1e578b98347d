"""The push subscriber: has feeds pushed by the hubs that they name.

What must be done for a feed is kept in storage, one step after the other
(`hub.core.push.hub_subscription`). Each request has a deadline, goes only where the
address guard lets it (for hubs that publishers name, other networks are allowed than
for callbacks), and follows only the redirects that WebSub allows. A hub that fails,
lies or vanishes gets fewer and fewer requests, and has no other effect: its feeds are
polled.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus
from random import Random
from typing import Final
from urllib.parse import urlsplit

import msgspec
import structlog

from hub.core.host_set import HostSet
from hub.core.push.hub_subscription import (
    CONFIRMED_WITHIN,
    ENDED_WITHIN,
    LEASE,
    LONGEST_BACKOFF,
    DropCallback,
    ForgetPush,
    LeaveHub,
    PushStep,
    SubscribeAtHub,
    WaitUntil,
    next_step,
    request_backoff,
)
from hub.core.push.used_hubs import UsedHubs
from hub.core.schedule.poll_period import Plan
from hub.http import Answer, Network, Purpose, Request, ResponseLimits
from hub.http.network_errors import HostBlocked, NetworkError
from hub.limits.host_limiter import HostLimiter, RequestKind
from hub.limits.push_hub_limiter import HubLimiter
from hub.runtime.background import wait_for
from hub.runtime.clock import Clock
from hub.runtime.offloading import run_in_thread
from hub.runtime.work_leases import WorkClaims
from protocols.http import parse_retry_after
from protocols.legacy_pings import LEASE_SECONDS, is_registered, registration_form
from protocols.protocol_errors import InvalidValue
from protocols.urls import host_name, resolve
from protocols.websub.callbacks import read_web_url
from protocols.websub.subscribing import subscription_form
from storage.contract import Storage
from storage.errors import StorageError
from storage.records import (
    CallbackState,
    FeedId,
    FeedPush,
    FeedState,
    NewPushCallback,
    PushCallback,
    PushCount,
    PushOffer,
    PushWay,
    StoredFeed,
    WorkKind,
)


class PollResumer:
    """Polls feeds again that are not pushed any more. It needs this part of the
    poller."""

    def __init__(
        self,
        storage: Storage,
        explain: Callable[[StoredFeed], Plan],
        wake: Callable[[], None],
    ) -> None:
        self._feeds = storage.feeds
        self._explain = explain
        self._wake = wake

    async def resume(self, feed_id: FeedId) -> None:
        """Plan a feed's next poll as if it had never been pushed, from its last fetch
        on."""
        feed = await self._feeds.get(feed_id)
        if feed is None or feed.state is not FeedState.ACTIVE:
            return
        due = self._explain(feed).next_fetch
        if due < feed.next_fetch:
            await self._feeds.defer([(feed_id, due)])
            self._wake()


LIMITS: Final = ResponseLimits(seconds=20.0, idle_seconds=20.0)
MOST_READ: Final = 4_096
"""Bytes of an answer that are read; only the answer of an rssCloud has a meaning."""
MOST_REDIRECTS: Final = 3
DOWN_TO_HTTP: Final = "the hub redirects from https to http"
"""Why such a redirect is refused: the request carries the secret and the callback's
URL, both of which must stay secret."""
FORM: Final = "application/x-www-form-urlencoded"
_REDIRECTS: Final = (HTTPStatus.TEMPORARY_REDIRECT, HTTPStatus.PERMANENT_REDIRECT)


class HubReply(msgspec.Struct, frozen=True, kw_only=True):
    """What a hub answered. ``lease`` is set if the hub sends no confirmation later;
    ``error`` is "" if it accepted the request."""

    error: str = ""
    counted: PushCount = PushCount.REFUSED
    lease: timedelta | None = None
    patience: timedelta | None = None  # for how long it wants no requests


class HubRequests:
    def __init__(
        self,
        network: Network,
        clock: Clock,
        public_url: str,
        user_agent: str,
        blocked: HostSet,
        limiter: HostLimiter,
    ) -> None:
        """``limiter``: the one of publishers, some of which run a hub on their own
        host."""
        self._network = network
        self._clock = clock
        self._public_url = public_url
        self._user_agent = user_agent
        self._blocked = blocked
        self._limiter = limiter

    async def subscribe(self, callback: NewPushCallback) -> HubReply:
        """Ask a hub for a subscription. Failures are returned as values, not raised."""
        if callback.way is PushWay.CLOUD:
            return await self._register(callback)
        body = subscription_form(
            mode="subscribe",
            topic=callback.topic,
            callback=self._url(callback.token),
            secret=callback.secret,
            lease_seconds=int(LEASE.total_seconds()),
        )
        reply, _answer = await self._post(callback.hub, body)
        return reply

    async def unsubscribe(self, callback: PushCallback) -> HubReply:
        """End a subscription at a WebSub hub. This is tried once: later pushes are
        refused anyway."""
        body = subscription_form(
            mode="unsubscribe",
            topic=callback.topic,
            callback=self._url(callback.token),
        )
        reply, _answer = await self._post(callback.hub, body)
        return reply

    async def _register(self, callback: NewPushCallback) -> HubReply:
        form = registration_form(
            callback=self._url(callback.token), topic=callback.topic
        )
        reply, answer = await self._post(callback.hub, form)
        if answer is None or reply.error:
            return reply
        if not is_registered(answer.body):
            return HubReply(error="the cloud refused the registration")
        return HubReply(lease=timedelta(seconds=LEASE_SECONDS))

    def _url(self, token: str) -> str:
        return f"{self._public_url}/upstream/{token}"

    async def _post(self, hub: str, body: bytes) -> tuple[HubReply, Answer | None]:
        """POST to a hub, along redirects, which it "MAY" send "with HTTP status code
        307 or 308" (WebSub 5.1)."""
        url = hub
        for _ in range(MOST_REDIRECTS):
            try:
                answer = await self._send(url, body)
            except NetworkError as error:
                is_there = error.status or url != hub  # some server has answered
                counted = PushCount.REFUSED if is_there else PushCount.UNANSWERED
                return HubReply(error=error.reason, counted=counted), None
            if answer.status not in _REDIRECTS:
                return self._judge(answer), answer
            try:
                target = read_web_url(
                    resolve(answer.headers.get("Location", ""), url), "Location"
                )
            except InvalidValue:
                return HubReply(error="the hub redirects to an invalid URL"), None
            if _scheme(url) == "https" != _scheme(target):
                return HubReply(error=DOWN_TO_HTTP), None
            url = target
        return HubReply(error="the hub redirects too often"), None

    async def _send(self, url: str, body: bytes) -> Answer:
        if self._blocked.covers(url):
            raise HostBlocked
        host = host_name(url)
        if not self._network.is_exempt(host, Purpose.HUB):
            await self._limiter.wait(host, RequestKind.HUB)
        return await self._network.send(
            Request(
                method="POST",
                url=url,
                purpose=Purpose.HUB,
                headers={"User-Agent": self._user_agent, "Content-Type": FORM},
                body=body,
                limits=LIMITS,
                cuts_body=True,
                cut=MOST_READ,
            )
        )

    def _judge(self, answer: Answer) -> HubReply:
        if 200 <= answer.status < 300:
            return HubReply()
        return HubReply(
            error=f"the hub answered {answer.status}",
            patience=_patience(answer, self._clock.now()),
        )


def _scheme(url: str) -> str:
    return urlsplit(url).scheme  # in lower case


def _patience(answer: Answer, now: datetime) -> timedelta | None:
    seconds = parse_retry_after(answer.headers.get("Retry-After", ""), now)
    return timedelta(seconds=seconds) if seconds else None


AT_ONCE = 32
PAGE = 256
MOST_STEPS = 10
"""Steps for one feed in a row."""
POLL_SECONDS = 1.0
FAULT_PAUSE = timedelta(minutes=5)
NOT_CONFIRMED = "the hub did not confirm the subscription"

log = structlog.get_logger()


class PushSubscriber:
    def __init__(
        self,
        storage: Storage,
        requests: HubRequests,
        hosts: HubLimiter,
        polls: PollResumer,
        clock: Clock,
        random: Random,
        claims: WorkClaims,
        used: UsedHubs,
    ) -> None:
        """At hubs that are not ``used`` it ends all subscriptions, and asks for
        none."""
        self._claims = claims
        self._pushes = storage.pushes
        self._requests = requests
        self._hosts = hosts
        self._polls = polls
        self._clock = clock
        self._random = random
        self._used = used
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._under_way: set[FeedId] = set()
        self._awake = asyncio.Event()

    def wake(self) -> None:
        """Look for due steps at once: a hub has confirmed or denied something."""
        self._awake.set()

    async def run(self) -> None:
        """Take due steps until cancelled; a request under way then is dropped once it
        has expired."""
        is_switched = False  # it may have been on or off before the hub started
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._awake.clear()
                try:
                    if not is_switched:
                        await self.switch()
                        is_switched = True
                    await self._start_due(tasks)
                except StorageError as error:
                    log.warning("pushes_not_read", error=str(error))
                await wait_for(self._awake, POLL_SECONDS)

    async def switch(self) -> None:
        """Have all feeds looked at for which something may have been set otherwise
        before."""
        unused: list[str] = []
        if self._used.is_on and self._used.unused:
            named = await self._pushes.named_hubs()
            unused = await run_in_thread(partial(self._used.left_out, named))
        await self._pushes.switch(is_on=self._used.is_on, unused=unused)

    async def _start_due(self, tasks: asyncio.TaskGroup) -> None:
        if not await self._claims.may_begin():
            return
        due = await self._pushes.due(
            self._clock.now(), limit=PAGE, without=self._under_way
        )
        for feed_push in due:
            await self._slots.acquire()
            self._under_way.add(feed_push.feed_id)
            tasks.create_task(self._work(feed_push))

    async def _work(self, feed_push: FeedPush) -> None:
        """Take the steps of one feed; however it ends, no other feed is affected."""
        try:
            await self.settle(feed_push)
        except StorageError as error:
            log.warning("push_not_stored", feed=feed_push.feed_id, error=str(error))
            await asyncio.sleep(POLL_SECONDS)
        finally:
            self._under_way.discard(feed_push.feed_id)
            self._slots.release()

    async def settle(self, feed_push: FeedPush) -> None:
        """Take step after step, until nothing can be done now, or somebody else is at
        it. Raises `StorageError`."""
        feed_id, kind = feed_push.feed_id, WorkKind.PUSHES
        lease_id, held = await self._claims.claim(kind, [feed_id])
        if not held:
            return
        try:
            async with self._claims.renewed(kind, held, lease_id):
                await self._settle_claimed(feed_push, lease_id)
        except StorageError:
            raise
        except Exception:
            log.exception("push_broke", feed=feed_id)
            due = self._clock.now() + FAULT_PAUSE
            await self._pushes.postpone(feed_id, due, lease_id=lease_id)
        finally:
            await self._claims.release(kind, [feed_id], lease_id)

    async def _settle_claimed(self, listed: FeedPush, lease_id: int) -> None:
        """``listed``: as it was before it was claimed."""
        current: FeedPush | None = listed
        for _ in range(MOST_STEPS):
            current = await self._pushes.get(listed.feed_id)
            if current is None or await self._do(current, lease_id):
                break
        if _is_overlooked(listed) or (current and _is_overlooked(current)):
            await self._polls.resume(listed.feed_id)

    async def _do(self, feed_push: FeedPush, lease_id: int) -> bool:
        """Take one step; True if it was the last one for now, or the claim is lost."""
        now, feed_id = self._clock.now(), feed_push.feed_id
        step = self._next_step(feed_push, now)
        match step:
            case SubscribeAtHub(offer):
                return await self._ask(feed_push, offer, lease_id)
            case LeaveHub(callback):
                return await self._leave(feed_push, callback, lease_id)
            case DropCallback(callback):
                return not await self._drop(feed_push, callback, lease_id)
            case ForgetPush():
                await self._pushes.forget(feed_id, lease_id=lease_id)
                return True
            case WaitUntil(until):
                if await self._pushes.postpone(feed_id, until, lease_id=lease_id):
                    return await self._is_unchanged(feed_id, step, now)
        return True

    async def _is_unchanged(
        self, feed_id: FeedId, step: PushStep, now: datetime
    ) -> bool:
        """Whether there is still nothing else to do: the hub, or a fetch, may have made
        the feed due just before it was postponed."""
        feed_push = await self._pushes.get(feed_id)
        return feed_push is None or self._next_step(feed_push, now) == step

    def _next_step(self, feed_push: FeedPush, now: datetime) -> PushStep:
        offer = feed_push.push.offer
        is_used = self._used.include(offer.hub) if offer else self._used.is_on
        return next_step(feed_push, now, is_on=is_used)

    async def _ask(self, feed_push: FeedPush, offer: PushOffer, lease_id: int) -> bool:
        """Ask the hub for the subscription; False if the next step can follow at
        once."""
        if not await self._has_turn(feed_push, offer.hub, lease_id):
            return True
        now = self._clock.now()
        new = NewPushCallback(
            feed_id=feed_push.feed_id,
            way=offer.way,
            hub=offer.hub,
            topic=offer.topic,
            token=secrets.token_urlsafe(24),
            secret=secrets.token_urlsafe(32),
            asked_at=now,
            until=now + CONFIRMED_WITHIN,
        )
        if not await self._pushes.ask(new, lease_id=lease_id):
            return True
        reply = await self._requests.subscribe(new)
        return not await self._heed(feed_push, new, reply, lease_id)

    async def _has_turn(self, feed_push: FeedPush, hub: str, lease_id: int) -> bool:
        """Wait for the hub's next turn; False if it is far off, and the feed is put
        off."""
        monotonic = self._clock.monotonic()
        turn = self._hosts.turn(hub, monotonic)
        wait = turn.at - monotonic
        if turn.is_taken:
            await asyncio.sleep(wait)
        else:
            due = self._clock.now() + timedelta(seconds=wait)
            await self._pushes.postpone(feed_push.feed_id, due, lease_id=lease_id)
        return turn.is_taken

    async def _heed(
        self,
        feed_push: FeedPush,
        new: NewPushCallback,
        reply: HubReply,
        lease_id: int,
    ) -> bool:
        """Store what came of a request; False if the claim is lost."""
        self._tell_host(new.hub, reply)
        callback = await self._pushes.find(new.token)
        if callback is None:  # it was denied meanwhile
            return True
        if reply.error:
            return await self._fail(feed_push, callback, reply, lease_id)
        if reply.lease is not None:
            until = self._clock.now() + reply.lease
            return await self._pushes.confirm(callback, until, lease_id=lease_id)
        return True

    def _tell_host(self, hub: str, reply: HubReply) -> None:
        is_down = reply.counted is PushCount.UNANSWERED or reply.patience is not None
        if reply.error and is_down:
            patience = reply.patience.total_seconds() if reply.patience else 0.0
            self._hosts.failed(hub, self._clock.monotonic(), patience)
        else:
            self._hosts.answered(hub, self._clock.monotonic())

    async def _leave(
        self, feed_push: FeedPush, callback: PushCallback, lease_id: int
    ) -> bool:
        """Leave a hub; True if its turn is yet to come, or the claim is lost.

        An rssCloud is not told, because its registrations end by themselves. A hub that
        fails is not told either; its pushes are refused.
        """
        monotonic = self._clock.monotonic()
        is_told = callback.way is PushWay.WEBSUB and not self._hosts.is_failing(
            callback.hub, monotonic
        )
        if is_told and not await self._has_turn(feed_push, callback.hub, lease_id):
            return True
        until = self._clock.now() + ENDED_WITHIN
        if not await self._pushes.leave(callback, until, lease_id=lease_id):
            return True
        if is_told:
            reply = await self._requests.unsubscribe(callback)
            self._tell_host(callback.hub, reply)
        return False

    async def _drop(
        self, feed_push: FeedPush, callback: PushCallback, lease_id: int
    ) -> bool:
        if callback.state is CallbackState.ASKED:
            reply = HubReply(error=NOT_CONFIRMED, counted=PushCount.UNANSWERED)
            return await self._fail(feed_push, callback, reply, lease_id)
        if callback.state is CallbackState.ACTIVE:
            await self._pushes.count(callback.hub, PushCount.LAPSED)
            log.info("push_lapsed", feed=callback.feed_id, hub=callback.hub)
        return await self._pushes.drop(callback, lease_id=lease_id)

    async def _fail(
        self,
        feed_push: FeedPush,
        callback: PushCallback,
        reply: HubReply,
        lease_id: int,
    ) -> bool:
        pause = request_backoff(feed_push.failures, self._random.random())
        if reply.patience is not None:
            pause = max(pause, min(reply.patience, LONGEST_BACKOFF))
        log.info(
            "push_not_granted",
            feed=callback.feed_id,
            hub=callback.hub,
            reason=reply.error,
        )
        return await self._pushes.fail(
            callback,
            reply.counted,
            error=reply.error,
            retry_at=self._clock.now() + pause,
            lease_id=lease_id,
        )


def _is_overlooked(feed_push: FeedPush) -> bool:
    """Whether the feed may be polled too rarely, because it was believed to be pushed
    and is not."""
    record = feed_push.push.record
    return feed_push.push.until is None and record.proofs >= record.needed
