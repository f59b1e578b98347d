"""The subscriber: sees to it that feeds are pushed by the hubs they name.

What is to be done waits in storage, and one step follows the other
(`hub.core.push.hub_subscription`). A hub that fails, lies or vanishes costs requests
that grow rarer, and nothing else: its feeds are polled.
"""

from __future__ import annotations

import asyncio
import secrets
from datetime import datetime, timedelta
from random import Random

import structlog

from hub.core.push.hub_subscription import (
    CONFIRMED_WITHIN,
    ENDED_WITHIN,
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
from hub.limits.hub_limiter import HubLimiter
from hub.runtime.background import wait_for
from hub.runtime.clock import Clock
from hub.upstream.polls import Polls
from hub.upstream.requests import HubReply, HubRequests
from storage.contract import Storage
from storage.errors import StorageError
from storage.records import (
    CallbackState,
    FeedId,
    NewPushCallback,
    PushCallback,
    PushCount,
    PushOffer,
    PushWay,
    Upstream,
)

AT_ONCE = 32
PAGE = 256
MOST_STEPS = 10
"""Of one feed at one go."""
POLL_SECONDS = 1.0
FAULT_PAUSE = timedelta(minutes=5)
NOT_CONFIRMED = "the hub did not confirm it"

log = structlog.get_logger()


class Subscriber:
    def __init__(
        self,
        storage: Storage,
        requests: HubRequests,
        hosts: HubLimiter,
        polls: Polls,
        clock: Clock,
        random: Random,
        *,
        is_on: bool = True,
    ) -> None:
        """Switched off, it leaves all hubs, and asks none."""
        self._pushes = storage.pushes
        self._requests = requests
        self._hosts = hosts
        self._polls = polls
        self._clock = clock
        self._random = random
        self._is_on = is_on
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._under_way: set[FeedId] = set()
        self._awake = asyncio.Event()

    def wake(self) -> None:
        """A hub has confirmed or denied something."""
        self._awake.set()

    async def run(self) -> None:
        """Until cancelled; what is under way then is dropped when its time is over."""
        is_switched = False  # it may have been off, or on, before the hub was started
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._awake.clear()
                try:
                    if not is_switched:
                        await self._pushes.switch(is_on=self._is_on)
                        is_switched = True
                    await self._start_due(tasks)
                except StorageError as error:
                    log.warning("pushes_not_read", error=str(error))
                await wait_for(self._awake, POLL_SECONDS)

    async def _start_due(self, tasks: asyncio.TaskGroup) -> None:
        due = await self._pushes.due(
            self._clock.now(), limit=PAGE, without=self._under_way
        )
        for upstream in due:
            await self._slots.acquire()
            self._under_way.add(upstream.feed_id)
            tasks.create_task(self._work(upstream))

    async def _work(self, upstream: Upstream) -> None:
        """One feed; it harms no other, however it ends."""
        try:
            await self.settle(upstream)
        except StorageError as error:
            log.warning("push_not_stored", feed=upstream.feed_id, error=str(error))
            await asyncio.sleep(POLL_SECONDS)
        except Exception:
            log.exception("push_broke", feed=upstream.feed_id)
            await self._postpone(upstream)
        finally:
            self._under_way.discard(upstream.feed_id)
            self._slots.release()

    async def _postpone(self, upstream: Upstream) -> None:
        try:
            due = self._clock.now() + FAULT_PAUSE
            await self._pushes.postpone(upstream.feed_id, due)
        except StorageError as error:
            log.warning("push_not_stored", feed=upstream.feed_id, error=str(error))

    async def settle(self, upstream: Upstream) -> None:
        """Step by step, until there is nothing to do now. Raises `StorageError`."""
        current: Upstream | None = upstream
        for _ in range(MOST_STEPS):
            if current is None or await self._do(current):
                break
            current = await self._pushes.get(upstream.feed_id)
        if _is_overlooked(upstream) or (current and _is_overlooked(current)):
            await self._polls.resume(upstream.feed_id)

    async def _do(self, upstream: Upstream) -> bool:
        """One step; True: it was the last one for now."""
        now = self._clock.now()
        step = self._next_step(upstream, now)
        match step:
            case SubscribeAtHub(offer):
                return await self._ask(upstream, offer)
            case LeaveHub(callback):
                return await self._leave(upstream, callback)
            case DropCallback(callback):
                await self._drop(upstream, callback)
            case ForgetPush():
                await self._pushes.forget(upstream.feed_id)
                return True
            case WaitUntil(until):
                await self._pushes.postpone(upstream.feed_id, until)
                return await self._is_unchanged(upstream.feed_id, step, now)
        return False

    async def _is_unchanged(
        self, feed_id: FeedId, step: PushStep, now: datetime
    ) -> bool:
        """Whether there is still nothing else to do: the hub, or a fetch, may have made
        it due just before it was postponed."""
        upstream = await self._pushes.get(feed_id)
        return upstream is None or self._next_step(upstream, now) == step

    def _next_step(self, upstream: Upstream, now: datetime) -> PushStep:
        return next_step(upstream, now, is_on=self._is_on)

    async def _ask(self, upstream: Upstream, offer: PushOffer) -> bool:
        """False: there is more to do at once."""
        if not await self._has_turn(upstream, offer.hub):
            return True
        now = self._clock.now()
        new = NewPushCallback(
            feed_id=upstream.feed_id,
            way=offer.way,
            hub=offer.hub,
            topic=offer.topic,
            token=secrets.token_urlsafe(24),
            secret=secrets.token_urlsafe(32),
            asked_at=now,
            until=now + CONFIRMED_WITHIN,
        )
        await self._pushes.ask(new)
        await self._heed(upstream, new, await self._requests.subscribe(new))
        return False

    async def _has_turn(self, upstream: Upstream, hub: str) -> bool:
        """Wait for the hub's next turn; False: it is far, and the feed is put off."""
        monotonic = self._clock.monotonic()
        turn = self._hosts.turn(hub, monotonic)
        wait = turn.at - monotonic
        if turn.is_taken:
            await asyncio.sleep(wait)
        else:
            due = self._clock.now() + timedelta(seconds=wait)
            await self._pushes.postpone(upstream.feed_id, due)
        return turn.is_taken

    async def _heed(
        self, upstream: Upstream, new: NewPushCallback, reply: HubReply
    ) -> None:
        self._tell_host(new.hub, reply)
        callback = await self._pushes.find(new.token)
        if callback is None:  # denied meanwhile
            return
        if reply.trouble:
            await self._fail(upstream, callback, reply)
        elif reply.lease is not None:
            await self._pushes.confirm(callback, self._clock.now() + reply.lease)

    def _tell_host(self, hub: str, reply: HubReply) -> None:
        is_down = reply.counted is PushCount.UNANSWERED or reply.patience is not None
        if reply.trouble and is_down:
            patience = reply.patience.total_seconds() if reply.patience else 0.0
            self._hosts.failed(hub, self._clock.monotonic(), patience)
        else:
            self._hosts.answered(hub, self._clock.monotonic())

    async def _leave(self, upstream: Upstream, callback: PushCallback) -> bool:
        """True: the hub's turn is yet to come. A cloud cannot be told: registrations
        end by themselves; nor is a hub in trouble, whose pushes are refused."""
        monotonic = self._clock.monotonic()
        is_told = callback.way is PushWay.WEBSUB and not self._hosts.is_in_trouble(
            callback.hub, monotonic
        )
        if is_told and not await self._has_turn(upstream, callback.hub):
            return True
        await self._pushes.leave(callback, self._clock.now() + ENDED_WITHIN)
        if is_told:
            reply = await self._requests.unsubscribe(callback)
            self._tell_host(callback.hub, reply)
        return False

    async def _drop(self, upstream: Upstream, callback: PushCallback) -> None:
        if callback.state is CallbackState.ASKED:
            reply = HubReply(trouble=NOT_CONFIRMED, counted=PushCount.UNANSWERED)
            await self._fail(upstream, callback, reply)
            return
        if callback.state is CallbackState.ACTIVE:
            await self._pushes.count(callback.hub, PushCount.LAPSED)
            log.info("push_lapsed", feed=callback.feed_id, hub=callback.hub)
        await self._pushes.drop(callback)

    async def _fail(
        self, upstream: Upstream, callback: PushCallback, reply: HubReply
    ) -> None:
        pause = request_backoff(upstream.failures, self._random.random())
        if reply.patience is not None:
            pause = max(pause, min(reply.patience, LONGEST_BACKOFF))
        log.info(
            "push_not_granted",
            feed=callback.feed_id,
            hub=callback.hub,
            reason=reply.trouble,
        )
        await self._pushes.fail(
            callback,
            reply.counted,
            trouble=reply.trouble,
            retry_at=self._clock.now() + pause,
        )


def _is_overlooked(upstream: Upstream) -> bool:
    """Whether it may be polled rarely, for it was believed to be pushed, and is not."""
    record = upstream.push.record
    return upstream.push.until is None and record.proofs >= record.needed
