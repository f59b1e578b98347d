"""The Superfeedr-compatible API: subscribe and unsubscribe for an account.

The account's token replaces verification of intent; a callback is asked only if the
request wants that: while it waits (``sync``), or afterwards (``async``).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

from hub.delivery.digests import DAY
from hub.runtime.clock import Clock
from hub.services.errors import NotConfirmed, ServiceError, TooManyWaiting
from hub.services.subscriptions import (
    Subscribed,
    SubscriptionRequest,
    SubscriptionService,
    Verify,
)
from hub.services.websub import (
    MOST_PENDING,
    MOST_PENDING_OF_ASKER,
    MOST_PENDING_OF_HOST,
)
from hub.websub.questions import Question, Reply
from protocols.errors import InvalidValue
from storage.contract import Storage
from storage.records import (
    OPERATOR,
    Subscription,
    SubscriptionId,
    SubscriptionState,
    Verification,
)

CONFIRM_SECONDS: Final = 25.0
"""How long the answer to a request waits for a callback's word."""
ROOM_OF_ACCOUNTS: Final = 1_000
"""Requests that wait for their callbacks, beyond those of the open hub: strangers
cannot take it from accounts."""
PREFIX: Final = "hub."
"""Of the parameters' names, where a fault is told."""
_NULL_DEVICES: Final = ("push.superfeedr.com/dev/null", "superfeedr.com/dev/null")


class Asker(Protocol):
    """What is needed of `hub.websub.questions.Questions`."""

    async def ask(
        self, verification: Question, *, tells_callback: bool = False
    ) -> Reply: ...


def is_null_device(callback: str, public_url: str) -> bool:
    """Whether it is the callback that hears nothing, for those who only retrieve or
    stream: Superfeedr's, or that of the hub at ``public_url``."""
    own = public_url.partition("://")[2]
    return callback.partition("://")[2] in (*_NULL_DEVICES, f"{own}/dev/null")


class SuperfeedrService:
    def __init__(
        self,
        storage: Storage,
        subscriptions: SubscriptionService,
        asker: Asker,
        clock: Clock,
        public_url: str,
        wake_verifier: Callable[[], None],
        confirm_seconds: float = CONFIRM_SECONDS,
    ) -> None:
        self._storage = storage
        self._subscriptions = subscriptions
        self._asker = asker
        self._clock = clock
        self._public_url = public_url
        self._wake_verifier = wake_verifier
        self.confirm_seconds = confirm_seconds

    async def subscribe(self, request: SubscriptionRequest) -> Subscribed | None:
        """None: the callback is asked later, and what it says then counts.

        Raises `InvalidValue`, `AddressRefused`, `NotAllowed`, `NotConfirmed` and
        `TooManyWaiting`.
        """
        request = self._silenced(request)
        self._subscriptions.check(request, prefix=PREFIX)
        if await self._is_put_off(request):
            return None
        await self._confirm(request)
        return await self._make(request)

    async def unsubscribe(self, request: SubscriptionRequest) -> bool:
        """False: the callback is asked later. What has ended, or never was, may be
        ended all the same: a client that starts anew does not know.

        Raises as `subscribe` does; `InvalidValue` for several and no callback.
        """
        request = self._silenced(request)
        found = await self._find(request)
        if request.verify is not None and not request.callback:
            raise InvalidValue("hub.callback", "the callback that is to be asked")
        if await self._is_put_off(request):
            return False
        await self._confirm(request)
        if found is not None and found.state is SubscriptionState.ACTIVE:
            await self._storage.subscriptions.end(
                found.id, "ended by the subscriber", self._clock.now(), tell=False
            )
        return True

    async def grant(self, verification: Verification) -> str:
        """Make what a callback has confirmed; why it cannot be, or "".

        Raises `StorageError`.
        """
        request = SubscriptionRequest.from_verification(verification)
        try:
            await self._make(self._silenced(request))
        except (InvalidValue, ServiceError) as error:
            return str(error)
        return ""

    def _silenced(self, request: SubscriptionRequest) -> SubscriptionRequest:
        is_silent = is_null_device(request.callback, self._public_url)
        return replace(request, is_silent=is_silent)

    async def _make(self, request: SubscriptionRequest) -> Subscribed:
        made = await self._subscriptions.add(request, prefix=PREFIX)
        has_digest = request.has_digest and not request.is_silent
        if has_digest or not made.is_new:
            due = self._clock.now() + DAY if has_digest else None
            await self._storage.digests.set(made.subscription.id, due)
        return made

    async def _find(self, request: SubscriptionRequest) -> Subscription | None:
        """The one that is meant, also if it has ended; None if there never was any.

        Raises `InvalidValue` for several and no callback.
        """
        subscriptions = self._storage.subscriptions
        if request.callback:
            return await subscriptions.find(
                request.account, request.topic, request.callback
            )
        several = await subscriptions.page(
            after=SubscriptionId(0),
            limit=2,
            account=request.account,
            topic=request.topic,
        )
        if len(several) > 1:
            raise InvalidValue(
                "hub.callback", "one of the callbacks subscribed to this topic"
            )
        return several[0] if several else None

    async def _is_put_off(self, request: SubscriptionRequest) -> bool:
        """Stored before the answer: what was accepted outlives a crash."""
        if request.verify is not Verify.ASYNC or request.is_silent:
            return False
        is_taken = await self._storage.verifications.add(
            request.as_verification(secrets.token_urlsafe(24)),
            self._clock.now(),
            most=MOST_PENDING + ROOM_OF_ACCOUNTS,
            most_of_host=MOST_PENDING_OF_HOST + ROOM_OF_ACCOUNTS,
            most_of_asker=None
            if request.account == OPERATOR
            else MOST_PENDING_OF_ASKER,
        )
        if not is_taken:
            raise TooManyWaiting("too many callbacks are to be asked")
        self._wake_verifier()
        return True

    async def _confirm(self, request: SubscriptionRequest) -> None:
        if request.verify is None or request.is_silent:
            return
        try:
            async with asyncio.timeout(self.confirm_seconds):
                reply = await self._asker.ask(request, tells_callback=True)
        except TimeoutError:
            raise NotConfirmed(request.callback, "ETIMEDOUT") from None
        if not reply.is_confirmed:
            reason = "" if reply.last.status else reply.last.reason
            raise NotConfirmed(request.callback, reason)
