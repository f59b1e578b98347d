"""Requests of other hubs to this one, at callback URLs that nobody can guess."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import partial

import structlog

from hub.core.push.hub_subscription import (
    CONFIRMED_WITHIN,
    LEAST_PAUSE,
    LONGEST_BACKOFF,
)
from hub.push.received_pushes import BodyReservation, ReceivedPush, ReceivedPushes
from hub.runtime.clock import Clock
from hub.runtime.metrics import Metrics
from hub.runtime.offloading import run_by_size
from hub.services.service_errors import Gone, TooManyWaiting
from protocols.websub.signatures import verify
from protocols.websub.subscribing import HubDenial, HubQuestion
from storage.contract import Storage
from storage.errors import NotFound
from storage.records import CallbackState, PushCallback, PushCount, PushWay

SHORTEST_LEASE = 2 * LEAST_PAUSE
"""A subscription with a shorter lease could not be renewed in time."""

log = structlog.get_logger()


class PushCallbackService:
    def __init__(
        self,
        storage: Storage,
        deliveries: ReceivedPushes,
        clock: Clock,
        wake: Callable[[], None],
        *,
        is_on: bool,
        metrics: Metrics | None = None,
    ) -> None:
        """``wake``: called when something about a subscription has changed."""
        self._pushes = storage.pushes
        self._deliveries = deliveries
        self._clock = clock
        self._wake = wake
        self._is_on = is_on
        self._metrics = metrics or Metrics()

    async def answer(self, token: str, question: HubQuestion | HubDenial) -> str:
        """The text that confirms a question of a hub; "" for a denial.

        WebSub 5.3.1: the subscriber "MUST confirm that the hub.topic corresponds to a
        pending subscription or unsubscription that it wishes to carry out". Raises
        `NotFound` for everything else.
        """
        callback = await self._found(token)
        if callback.way is not PushWay.WEBSUB or callback.topic != question.topic:
            raise _unknown()
        if isinstance(question, HubDenial):
            await self._deny(callback, question)
            return ""
        if question.mode == "unsubscribe":
            await self._confirm_end(callback)
        else:
            await self._confirm(callback, question.lease_seconds)
        return question.challenge

    async def answer_cloud(self, token: str, topic: str, challenge: str) -> str:
        """Like `answer`, for an rssCloud server: returns its challenge, which confirms
        the registration."""
        callback = await self._found(token)
        is_asked = callback.state is not CallbackState.ENDING
        if callback.way is not PushWay.CLOUD or callback.topic != topic or not is_asked:
            raise _unknown()
        return challenge

    async def open(self, token: str) -> PushCallback:
        """The callback that something was pushed to.

        Raises `Gone` for a callback that has ended or never existed, which makes the
        hub end what it may still have for it (WebSub 7).
        """
        callback = await self._pushes.find(token) if self._is_on else None
        is_open = (
            callback is not None
            and callback.state is not CallbackState.ASKED
            and callback.until > self._clock.now()
        )
        if callback is None or not is_open:
            raise Gone("no such subscription")
        return callback

    def reading(self) -> AbstractContextManager[BodyReservation]:
        """Hold memory while a body is read, and until it is queued."""
        return self._deliveries.reading()

    async def reject(self, callback: PushCallback) -> None:
        """Count a push that was too large."""
        await self._pushes.count(callback.hub, PushCount.REJECTED)

    async def take(
        self, callback: PushCallback, body: bytes, content_type: str, signature: str
    ) -> None:
        """Queue a push to be read soon.

        A push with a wrong signature, or none, is ignored silently: WebSub 7.1 lets
        subscribers answer 2xx to "prevent brute-force attacks of the signature". Raises
        `TooManyWaiting`.
        """
        is_signed = partial(verify, signature, callback.secret, body)
        if not await run_by_size(is_signed, len(body)):
            log.warning("push_forged", feed=callback.feed_id, hub=callback.hub)
            await self._pushes.count(callback.hub, PushCount.FORGED)
            return
        await self._put(
            ReceivedPush(
                callback=callback,
                at=self._clock.now(),
                body=body,
                content_type=content_type,
            )
        )

    async def take_notice(self, callback: PushCallback, topic: str) -> None:
        """Note that an rssCloud server has news. Raises `TooManyWaiting`."""
        if topic == callback.topic:
            await self._put(ReceivedPush(callback=callback, at=self._clock.now()))

    async def _put(self, delivery: ReceivedPush) -> None:
        callback = delivery.callback
        if callback.state is CallbackState.ENDING:  # another callback gets it as well
            return
        if self._deliveries.is_known(delivery):
            await self._pushes.count(callback.hub, PushCount.DELIVERED)
            return
        if not self._deliveries.has_place(delivery):
            await self._pushes.count(callback.hub, PushCount.REJECTED)
            raise TooManyWaiting("too many pushes are waiting")
        await self._pushes.hint(callback, delivery.at)
        self._deliveries.put(delivery)
        self._metrics.pushes += 1

    async def _found(self, token: str) -> PushCallback:
        callback = await self._pushes.find(token)
        if callback is None or callback.until <= self._clock.now():
            raise _unknown()
        if not self._is_on and callback.state is not CallbackState.ENDING:
            raise _unknown()
        return callback

    async def _confirm(self, callback: PushCallback, lease_seconds: int) -> None:
        now = self._clock.now()
        is_pending = callback.state is CallbackState.ASKED or (
            callback.state is CallbackState.ACTIVE
            and now < callback.asked_at + CONFIRMED_WITHIN
        )
        if not is_pending:
            raise _unknown()
        lease = timedelta(seconds=lease_seconds)
        if lease < SHORTEST_LEASE:
            await self._refuse(callback, f"it grants only {lease_seconds} s")
            raise _unknown()
        await self._pushes.confirm(callback, now + lease)
        log.info(
            "push_confirmed",
            feed=callback.feed_id,
            hub=callback.hub,
            lease=lease_seconds,
        )
        self._wake()

    async def _confirm_end(self, callback: PushCallback) -> None:
        if callback.state is not CallbackState.ENDING:
            raise _unknown()
        await self._pushes.drop(callback)
        self._wake()

    async def _deny(self, callback: PushCallback, denial: HubDenial) -> None:
        log.info("push_denied", feed=callback.feed_id, hub=callback.hub)
        if callback.state is CallbackState.ENDING:
            await self._pushes.drop(callback)
        else:
            await self._refuse(callback, denial.reason or "without a reason")
        self._wake()

    async def _refuse(self, callback: PushCallback, reason: str) -> None:
        """Store that the hub refused; it is asked again after a week."""
        await self._pushes.fail(
            callback,
            PushCount.REFUSED,
            error=f"the hub denied it: {reason}",
            retry_at=self._clock.now() + LONGEST_BACKOFF,
        )


def _unknown() -> NotFound:
    return NotFound("subscription", "at this callback")
