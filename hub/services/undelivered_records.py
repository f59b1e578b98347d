"""Undelivered records of callbacks: try them again, or discard them."""

from __future__ import annotations

from hub.runtime.clock import Clock
from hub.services.service_errors import Conflict
from storage.contract import DeliveryStore
from storage.errors import StorageBusy
from storage.records import SubscriptionId


class UndeliveredService:
    def __init__(self, deliveries: DeliveryStore, clock: Clock) -> None:
        self._deliveries = deliveries
        self._clock = clock

    async def retry(self, subscription_id: SubscriptionId) -> None:
        """Try a retrying subscription now. Raises `NotFound`."""
        await self._deliveries.retry_now(subscription_id, self._clock.now())

    async def retry_dead_letter(self, number: int) -> None:
        """Deliver it after all, as far as the log has it. Raises `NotFound`, and
        `Conflict` while its subscription is sent something else."""
        try:
            await self._deliveries.retry_dead_letter(number, self._clock.now())
        except StorageBusy as error:
            raise Conflict(
                "another delivery of the subscription is in flight; try again later"
            ) from error

    async def discard(self, subscription_id: SubscriptionId) -> None:
        """A retrying subscription is not sent what it lacks. Raises `NotFound`."""
        await self._deliveries.discard_retry(subscription_id, self._clock.now())

    async def discard_dead_letter(self, number: int) -> None:
        """Raises `NotFound`."""
        await self._deliveries.discard_dead_letter(number)
