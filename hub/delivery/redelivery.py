"""Replays that a subscriber requests: one document, sent at once and tried once.

Replays are independent of the deliveries of the log: they neither wait for them nor
advance a subscription. Those that the requester does not wait for are kept in memory
only.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Final, Protocol

import msgspec
import structlog

from hub.core.delivery.delivery_outcome import Verdict, verdict
from hub.delivery.notification_counter import NotificationCounter
from hub.delivery.notifications import NotificationBody
from hub.delivery.webhook import delivery_of, request_of
from hub.http import Answer, Request
from hub.http.network_errors import NetworkError
from hub.runtime.clock import Clock
from storage.records import Subscription

AT_ONCE: Final = 16
MOST_WAITING: Final = 1_000
MOST_BYTES: Final = 64 * 2**20
"""Bytes of all documents that wait: a thousand documents could be a gigabyte."""

log = structlog.get_logger()


class Sending(Protocol):
    """The part of `hub.http.Network` that is needed here."""

    async def send(self, request: Request) -> Answer: ...


class _Order(msgspec.Struct, frozen=True):
    subscription: Subscription
    document: NotificationBody


class Redeliveries:
    """Sends replays. `run` is its background part: it sends those that nobody waits
    for."""

    def __init__(
        self, network: Sending, clock: Clock, hub_url: str, counter: NotificationCounter
    ) -> None:
        self._network = network
        self._clock = clock
        self._hub_url = hub_url
        self._counter = counter
        self._sending = asyncio.Semaphore(AT_ONCE)
        self._waiting: asyncio.Queue[_Order] = asyncio.Queue(MOST_WAITING)
        self._waiting_bytes = 0

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._work())

    async def send(self, subscription: Subscription, document: NotificationBody) -> str:
        """Send a document; returns why the callback did not take it, or ""."""
        async with self._sending:
            request = await self._request(subscription, document)
            try:
                answer = await self._network.send(request)
            except NetworkError as error:
                return error.reason
        if verdict(answer.status) is Verdict.DELIVERED:
            return ""
        return f"it answered {answer.status}"

    def send_later(
        self, subscription: Subscription, document: NotificationBody
    ) -> bool:
        """Queue a document; False if too many documents or bytes wait already.

        If nothing waits, a document larger than the limit is taken too.
        """
        size = len(document.body)
        has_room = not self._waiting_bytes or self._waiting_bytes + size <= MOST_BYTES
        if self._waiting.full() or not has_room:
            return False
        self._waiting_bytes += size
        self._waiting.put_nowait(_Order(subscription, document))
        return True

    async def _work(self) -> None:
        while True:
            # A call of its own, so that a worker that waits holds no document.
            await self._carry_out(await self._waiting.get())

    async def _carry_out(self, order: _Order) -> None:
        try:
            reason = await self.send(order.subscription, order.document)
        except Exception:  # one failure harms no other replay
            log.exception("redelivery_broke", subscription=order.subscription.id)
            return
        finally:
            self._waiting_bytes -= len(order.document.body)
        if reason:
            log.info(
                "redelivery_failed", subscription=order.subscription.id, error=reason
            )

    async def _request(
        self, subscription: Subscription, document: NotificationBody
    ) -> Request:
        delivery = delivery_of(
            subscription,
            document,
            self._counter.take(subscription.account),
            # A new id: receivers drop an id that they have seen.
            id=f"replay-{secrets.token_hex(8)}-{subscription.id}",
            at=int(self._clock.now().timestamp()),
            hub_url=self._hub_url,
        )
        return await request_of(delivery)
