"""Denials: subscribers are told when the hub ends their subscription.

WebSub 5.2: the hub "MUST inform the subscriber by sending an HTTP GET request to the
subscriber's callback URL" with ``hub.mode=denied``. A few tries are made, counted in
memory only. Then the subscription is over, whether or not its subscriber was reached.
"""

from __future__ import annotations

import asyncio

import msgspec
import structlog

from hub.http import Network, Purpose, Request
from hub.http.network_errors import NetworkError
from hub.limits.host_limiter import HostLimiter, RequestKind
from hub.runtime.clock import Clock
from hub.runtime.work_leases import WorkClaims
from protocols.urls import host_name
from protocols.websub.verification import denial_url
from storage.contract import Storage
from storage.errors import StorageError
from storage.records import Subscription, SubscriptionId, WorkKind

POLL_SECONDS = 1.0
PAGE = 500
LARGEST_PAGE = 8_000
AT_ONCE = 32

PAUSES = (10.0, 60.0)
"""Seconds to wait after the first and the second failed try; the third is the last."""

HOST_PAUSE = 1.0
"""Seconds between two denials to one host, so that no host is flooded by them."""

log = structlog.get_logger()


class _Failed(msgspec.Struct, frozen=True):
    """How many tries have failed, and the monotonic time of the next one."""

    tries: int
    next_try: float


class Denials:
    def __init__(
        self,
        storage: Storage,
        network: Network,
        clock: Clock,
        limiter: HostLimiter,
        claims: WorkClaims,
    ) -> None:
        self._subscriptions = storage.subscriptions
        self._claims = claims
        self._network = network
        self._clock = clock
        self._limiter = limiter
        self._failed: dict[SubscriptionId, _Failed] = {}
        self._hosts: dict[str, float] = {}  # when each host was last sent a denial
        self._page = PAGE

    async def run(self) -> None:
        """Send the denials that are due, until cancelled."""
        while True:
            await self.tell()
            await asyncio.sleep(POLL_SECONDS)

    async def tell(self) -> None:
        """Send one round of denials: those that are due, at most one for each callback
        host."""
        try:
            if not await self._claims.may_begin():
                return
            ending = await self._subscriptions.ending(self._clock.now(), self._page)
        except StorageError as error:
            log.warning("denials_not_read", error=str(error))
            return
        self._forget_all_but(ending)
        turns = [each for each in ending if self._has_turn(each)]
        self._widen(found=len(ending), is_idle=not turns)
        for start in range(0, len(turns), AT_ONCE):
            await self._tell_all(turns[start : start + AT_ONCE])

    def _widen(self, *, found: int, is_idle: bool) -> None:
        """Read a larger page next time if all denials of this one must still wait."""
        if is_idle and found == self._page:
            self._page = min(self._page * 2, LARGEST_PAGE)
        elif found < PAGE:
            self._page = PAGE

    async def _tell_all(self, subscriptions: list[Subscription]) -> None:
        ids = [each.id for each in subscriptions]
        try:
            lease_id, held = await self._claims.claim(WorkKind.DENIALS, ids)
        except StorageError as error:
            log.warning("denials_not_claimed", count=len(ids), error=str(error))
            return
        claimed = [each for each in subscriptions if each.id in held]
        async with self._claims.renewed(WorkKind.DENIALS, held, lease_id):
            over = await self._tell_claimed(claimed)
            try:
                await self._subscriptions.mark_denied(over, lease_id=lease_id)
            except StorageError as error:
                log.warning("denials_not_recorded", count=len(over), error=str(error))
                over = []
        await self._claims.release(WorkKind.DENIALS, [*held.difference(over)], lease_id)

    async def _tell_claimed(
        self, subscriptions: list[Subscription]
    ) -> list[SubscriptionId]:
        """Tell each; returns those that need not be told again."""
        async with asyncio.TaskGroup() as tasks:
            answers = [tasks.create_task(self._deny(each)) for each in subscriptions]
        pairs = zip(subscriptions, answers, strict=True)
        return [
            each.id
            for each, error in ((each, answer.result()) for each, answer in pairs)
            if not error or self._gives_up(each, error)
        ]

    async def _deny(self, subscription: Subscription) -> str:
        """Send one denial; returns why it did not arrive, or ""."""
        url = denial_url(
            subscription.callback, subscription.topic, subscription.ended_reason
        )
        request = Request(
            method="GET", url=url, purpose=Purpose.CALLBACK, cuts_body=True
        )
        await self._limiter.wait(host_name(subscription.callback), RequestKind.DENIAL)
        try:
            answer = await self._network.send(request)
        except NetworkError as error:
            return error.reason
        is_failure = answer.status == 429 or answer.status >= 500
        return f"answered {answer.status}" if is_failure else ""

    def _gives_up(self, subscription: Subscription, error: str) -> bool:
        """Count a failed try; returns whether it was the last."""
        failed = self._failed.get(subscription.id, _Failed(0, 0.0))
        if failed.tries == len(PAUSES):
            log.warning("denial_given_up", subscription=subscription.id, error=error)
            return True
        next_try = self._clock.monotonic() + PAUSES[failed.tries]
        self._failed[subscription.id] = _Failed(failed.tries + 1, next_try)
        return False

    def _has_turn(self, subscription: Subscription) -> bool:
        now = self._clock.monotonic()
        failed = self._failed.get(subscription.id)
        if failed is not None and now < failed.next_try:
            return False
        host = host_name(subscription.callback)
        if self._limiter.is_exempt(host):
            return True
        is_waited_for = self._limiter.is_waited_for(host, RequestKind.DENIAL)
        if host in self._hosts or is_waited_for:
            return False
        self._hosts[host] = now
        return True

    def _forget_all_but(self, ending: list[Subscription]) -> None:
        now = self._clock.monotonic()
        ids = {each.id for each in ending}
        self._failed = {id: each for id, each in self._failed.items() if id in ids}
        self._hosts = {
            host: at for host, at in self._hosts.items() if now - at < HOST_PAUSE
        }
