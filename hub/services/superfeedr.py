"""The Superfeedr-compatible API: subscribe and unsubscribe for an account.

The account's token replaces verification of intent; a callback is asked only if the
request wants that: while it waits (``sync``), or afterwards (``async``).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import structlog

from hub.clock import Clock
from hub.delivery.digests import DAY
from hub.services.errors import NotConfirmed, ServiceError, TooManyWaiting
from hub.services.subscriptions import Subscribe, Subscribed, SubscriptionService
from hub.websub.questions import Question, Reply
from protocols.errors import InvalidValue
from protocols.websub.leases import ENDLESS_LEASE
from storage.errors import StorageError
from storage.interface import Storage
from storage.records import (
    AccountId,
    Format,
    Listing,
    ListingSearch,
    Subscription,
    SubscriptionId,
    SubscriptionState,
    VerificationMode,
)

CONFIRM_SECONDS = 25.0
"""How long the answer to a request waits for a callback's word."""
MOST_WAITING = 1_000
ASKED_AT_ONCE = 16
NULL_DEVICES = ("push.superfeedr.com/dev/null", "superfeedr.com/dev/null")

log = structlog.get_logger()


class Verify(StrEnum):
    """Whether the callback is asked: before the answer, or after it."""

    SYNC = "sync"
    ASYNC = "async"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What an account wants of a topic. ``callback`` "": its only subscription's."""

    mode: VerificationMode
    account: AccountId
    topic: str
    callback: str = ""
    secret: str = ""
    algorithm: str = "sha1"
    format: Format | None = None  # None: Atom of a feed, else as it is
    has_digest: bool = False
    shown: tuple[tuple[str, str], ...] = ()  # further parameters, for the publisher
    verify: Verify | None = None
    verify_token: str = ""

    @property
    def lease_seconds(self) -> int:
        return ENDLESS_LEASE


class Asker(Protocol):
    """What is needed of `hub.websub.questions.Questions`."""

    async def ask(
        self, verification: Question, *, tells_callback: bool = False
    ) -> Reply: ...


class SuperfeedrService:
    def __init__(
        self,
        storage: Storage,
        subscriptions: SubscriptionService,
        asker: Asker,
        clock: Clock,
        public_url: str,
        confirm_seconds: float = CONFIRM_SECONDS,
    ) -> None:
        self._storage = storage
        self._subscriptions = subscriptions
        self._asker = asker
        self._clock = clock
        self._public_url = public_url
        self.confirm_seconds = confirm_seconds
        self._waiting: asyncio.Queue[Wish] = asyncio.Queue(MOST_WAITING)

    async def subscribe(self, wish: Wish) -> Subscribed | None:
        """None: the callback is asked later, and what it says then counts.

        Raises `InvalidValue`, `AddressRefused`, `NotAllowed`, `NotConfirmed` and
        `TooManyWaiting`.
        """
        if self._is_put_off(wish):
            return None
        await self._confirm(wish)
        return await self._subscribe(wish)

    async def unsubscribe(self, wish: Wish) -> bool:
        """False: the callback is asked later. One that has ended may be ended again.

        Raises as `subscribe` does; `InvalidValue` if there is no such subscription, or
        several and no callback.
        """
        found = await self._find(wish)
        if wish.verify is not None and not wish.callback:
            raise InvalidValue("hub.callback", "the callback that is to be asked")
        if self._is_put_off(wish):
            return False
        await self._confirm(wish)
        await self._end(found)
        return True

    async def listing(
        self, account: AccountId, search: ListingSearch, *, page: int, by_page: int
    ) -> Listing:
        """The account's subscriptions, oldest first; pages are counted from 1."""
        return await self._storage.listings.page(
            account, search, skip=(page - 1) * by_page, limit=by_page
        )

    async def run(self) -> None:
        """Ask callbacks of requests that did not wait for it, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(ASKED_AT_ONCE):
                group.create_task(self._work())

    def is_null_device(self, callback: str) -> bool:
        """Whether it is the callback that hears nothing, here or at Superfeedr."""
        address = callback.partition("://")[2]
        own = self._public_url.partition("://")[2]
        return address in (*NULL_DEVICES, f"{own}/dev/null")

    def _is_put_off(self, wish: Wish) -> bool:
        if wish.verify is not Verify.ASYNC or self.is_null_device(wish.callback):
            return False
        try:
            self._waiting.put_nowait(wish)
        except asyncio.QueueFull:
            raise TooManyWaiting("too many callbacks are to be asked") from None
        return True

    async def _work(self) -> None:
        while True:
            wish = await self._waiting.get()
            try:
                await self._fulfil(wish)
            except (InvalidValue, ServiceError, StorageError) as error:
                log.info(
                    "verification_failed",
                    account=wish.account,
                    mode=wish.mode.value,
                    reason=type(error).__name__,
                )

    async def _fulfil(self, wish: Wish) -> None:
        await self._confirm(wish)
        if wish.mode is VerificationMode.SUBSCRIBE:
            await self._subscribe(wish)
        else:
            await self._end(await self._find(wish))

    async def _confirm(self, wish: Wish) -> None:
        if wish.verify is None or self.is_null_device(wish.callback):
            return
        try:
            async with asyncio.timeout(self.confirm_seconds):
                reply = await self._asker.ask(wish, tells_callback=True)
        except TimeoutError:
            raise NotConfirmed(wish.callback, "ETIMEDOUT") from None
        if not reply.is_confirmed:
            reason = "" if reply.last.status else reply.last.reason
            raise NotConfirmed(wish.callback, reason)

    async def _subscribe(self, wish: Wish) -> Subscribed:
        request = Subscribe(
            callback=wish.callback,
            topic=wish.topic,
            account=wish.account,
            secret=wish.secret,
            algorithm=wish.algorithm,
            format=wish.format,
            is_silent=self.is_null_device(wish.callback),
            shown=wish.shown,
        )
        made = await self._subscriptions.add(request, prefix="hub.")
        has_digest = wish.has_digest and not request.is_silent
        if has_digest or not made.is_new:
            due = self._clock.now() + DAY if has_digest else None
            await self._storage.digests.set(made.subscription.id, due)
        return made

    async def _find(self, wish: Wish) -> Subscription:
        if wish.callback:
            found = await self._storage.subscriptions.find(
                wish.account, wish.topic, wish.callback
            )
            if found is None:
                raise _not_subscribed()
            return found
        several = await self._storage.subscriptions.page(
            after=SubscriptionId(0), limit=2, account=wish.account, topic=wish.topic
        )
        if not several:
            raise _not_subscribed()
        if len(several) > 1:
            raise InvalidValue(
                "hub.callback", "one of the callbacks subscribed to this topic"
            )
        return several[0]

    async def _end(self, found: Subscription) -> None:
        if found.state is SubscriptionState.ACTIVE:
            await self._storage.subscriptions.end(
                found.id, "ended by the subscriber", self._clock.now(), tell=False
            )


def _not_subscribed() -> InvalidValue:
    return InvalidValue("hub.topic", "a topic this account is subscribed to")
