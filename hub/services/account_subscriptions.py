"""Subscriptions that an account makes and ends by the Superfeedr-compatible API."""

from __future__ import annotations

from hub.delivery.digests import DAY
from hub.runtime.clock import Clock
from hub.services.errors import ServiceError
from hub.services.null_device import is_null_device
from hub.services.subscriptions import Subscribe, Subscribed, SubscriptionService
from hub.services.wishes import Wish
from protocols.errors import InvalidValue
from storage.interface import Storage
from storage.records import (
    Subscription,
    SubscriptionId,
    SubscriptionState,
    Verification,
)


class AccountSubscriptions:
    """Whoever is to be asked was asked before."""

    def __init__(
        self,
        storage: Storage,
        subscriptions: SubscriptionService,
        clock: Clock,
        public_url: str,
    ) -> None:
        self._storage = storage
        self._subscriptions = subscriptions
        self._clock = clock
        self._public_url = public_url

    def check(self, wish: Wish) -> None:
        """What can be said before its callback is asked. Raises `InvalidValue`."""
        self._subscriptions.check(self._request(wish), prefix="hub.")

    async def make(self, wish: Wish) -> Subscribed:
        """Raises as `SubscriptionService.add` does."""
        request = self._request(wish)
        made = await self._subscriptions.add(request, prefix="hub.")
        has_digest = wish.has_digest and not request.is_silent
        if has_digest or not made.is_new:
            due = self._clock.now() + DAY if has_digest else None
            await self._storage.digests.set(made.subscription.id, due)
        return made

    async def grant(self, verification: Verification) -> str:
        """Make what a callback has confirmed; why it cannot be, or "".

        Raises `StorageError`.
        """
        try:
            await self.make(Wish.from_verification(verification))
        except (InvalidValue, ServiceError) as error:
            return str(error)
        return ""

    def _request(self, wish: Wish) -> Subscribe:
        return Subscribe(
            callback=wish.callback,
            topic=wish.topic,
            account=wish.account,
            secret=wish.secret,
            algorithm=wish.algorithm,
            format=wish.format,
            is_silent=self.is_null_device(wish.callback),
            shown=wish.shown,
            headers=wish.headers,
        )

    async def find(self, wish: Wish) -> Subscription | None:
        """The one that is meant, also if it has ended; None if there never was any.

        Raises `InvalidValue` for several and no callback.
        """
        if wish.callback:
            return await self._storage.subscriptions.find(
                wish.account, wish.topic, wish.callback
            )
        several = await self._storage.subscriptions.page(
            after=SubscriptionId(0), limit=2, account=wish.account, topic=wish.topic
        )
        if len(several) > 1:
            raise InvalidValue(
                "hub.callback", "one of the callbacks subscribed to this topic"
            )
        return several[0] if several else None

    async def end(self, found: Subscription | None) -> None:
        """Also one that has ended already, or never was."""
        if found is not None and found.state is SubscriptionState.ACTIVE:
            await self._storage.subscriptions.end(
                found.id, "ended by the subscriber", self._clock.now(), tell=False
            )

    def is_null_device(self, callback: str) -> bool:
        return is_null_device(callback, self._public_url)
