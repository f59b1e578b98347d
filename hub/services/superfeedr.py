"""The Superfeedr-compatible API: subscribe and unsubscribe for an account.

The account's token replaces verification of intent; a callback is asked only if the
request wants that: while it waits (``sync``), or afterwards (``async``).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Protocol

from hub.runtime.clock import Clock
from hub.services.account_subscriptions import AccountSubscriptions
from hub.services.errors import NotConfirmed, TooManyWaiting
from hub.services.subscriptions import Subscribed
from hub.services.websub import (
    MOST_PENDING,
    MOST_PENDING_OF_ASKER,
    MOST_PENDING_OF_HOST,
)
from hub.services.wishes import Verify, Wish
from hub.websub.questions import Question, Reply
from protocols.errors import InvalidValue
from storage.interface import Storage
from storage.records import OPERATOR, AccountId, Listing, ListingSearch

CONFIRM_SECONDS = 25.0
"""How long the answer to a request waits for a callback's word."""
ROOM_OF_ACCOUNTS = 1_000
"""Requests that wait for their callbacks, beyond those of the open hub: strangers
cannot take it from accounts."""


class Asker(Protocol):
    """What is needed of `hub.websub.questions.Questions`."""

    async def ask(
        self, verification: Question, *, tells_callback: bool = False
    ) -> Reply: ...


class SuperfeedrService:
    def __init__(
        self,
        storage: Storage,
        subscriptions: AccountSubscriptions,
        asker: Asker,
        clock: Clock,
        wake_verifier: Callable[[], None],
        confirm_seconds: float = CONFIRM_SECONDS,
    ) -> None:
        self._storage = storage
        self._subscriptions = subscriptions
        self._asker = asker
        self._clock = clock
        self._wake_verifier = wake_verifier
        self.confirm_seconds = confirm_seconds

    async def subscribe(self, wish: Wish) -> Subscribed | None:
        """None: the callback is asked later, and what it says then counts.

        Raises `InvalidValue`, `AddressRefused`, `NotAllowed`, `NotConfirmed` and
        `TooManyWaiting`.
        """
        self._subscriptions.check(wish)
        if await self._is_put_off(wish):
            return None
        await self._confirm(wish)
        return await self._subscriptions.make(wish)

    async def unsubscribe(self, wish: Wish) -> bool:
        """False: the callback is asked later. What has ended, or never was, may be
        ended all the same: a client that starts anew does not know.

        Raises as `subscribe` does; `InvalidValue` for several and no callback.
        """
        found = await self._subscriptions.find(wish)
        if wish.verify is not None and not wish.callback:
            raise InvalidValue("hub.callback", "the callback that is to be asked")
        if await self._is_put_off(wish):
            return False
        await self._confirm(wish)
        await self._subscriptions.end(found)
        return True

    async def listing(
        self,
        account: AccountId,
        search: ListingSearch,
        *,
        page: int,
        by_page: int,
        has_total: bool = True,
    ) -> Listing:
        """The account's subscriptions, oldest first; pages are counted from 1."""
        return await self._storage.listings.page(
            account,
            search,
            skip=(page - 1) * by_page,
            limit=by_page,
            has_total=has_total,
        )

    async def _is_put_off(self, wish: Wish) -> bool:
        """Stored before the answer: what was accepted outlives a crash."""
        is_null_device = self._subscriptions.is_null_device(wish.callback)
        if wish.verify is not Verify.ASYNC or is_null_device:
            return False
        is_taken = await self._storage.verifications.add(
            wish.put_off(secrets.token_urlsafe(24)),
            self._clock.now(),
            most=MOST_PENDING + ROOM_OF_ACCOUNTS,
            most_of_host=MOST_PENDING_OF_HOST + ROOM_OF_ACCOUNTS,
            most_of_asker=None if wish.account == OPERATOR else MOST_PENDING_OF_ASKER,
        )
        if not is_taken:
            raise TooManyWaiting("too many callbacks are to be asked")
        self._wake_verifier()
        return True

    async def _confirm(self, wish: Wish) -> None:
        if wish.verify is None or self._subscriptions.is_null_device(wish.callback):
            return
        try:
            async with asyncio.timeout(self.confirm_seconds):
                reply = await self._asker.ask(wish, tells_callback=True)
        except TimeoutError:
            raise NotConfirmed(wish.callback, "ETIMEDOUT") from None
        if not reply.is_confirmed:
            reason = "" if reply.last.status else reply.last.reason
            raise NotConfirmed(wish.callback, reason)
