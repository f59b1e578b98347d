"""Deliveries that did not go straight through: stragglers and dead ranges."""

from __future__ import annotations

from dataclasses import dataclass

from hub.runtime.clock import Clock
from hub.services.errors import Conflict
from storage.errors import StorageBusy
from storage.interface import Storage
from storage.records import DeadRange, Straggler, SubscriptionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Troubled:
    """One page of each kind of delivery that is in trouble."""

    stragglers: tuple[Straggler, ...]
    dead: tuple[DeadRange, ...]


class DeliveryService:
    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock

    async def troubled(
        self, *, stragglers_after: SubscriptionId, dead_after: int, limit: int
    ) -> Troubled:
        """Open stragglers by subscription, and dead ranges by id."""
        deliveries = self._storage.deliveries
        stragglers = await deliveries.stragglers(after=stragglers_after, limit=limit)
        dead = await deliveries.dead(after=dead_after, limit=limit)
        return Troubled(stragglers=tuple(stragglers), dead=tuple(dead))

    async def retry_straggler(self, subscription_id: SubscriptionId) -> None:
        """Try a late subscription now. Raises `NotFound`."""
        await self._storage.deliveries.retry_straggler(
            subscription_id, self._clock.now()
        )

    async def retry_dead(self, dead_id: int) -> None:
        """Deliver a dead range after all. Raises `NotFound`, `Conflict`."""
        try:
            await self._storage.deliveries.retry_dead(dead_id, self._clock.now())
        except StorageBusy as error:
            raise Conflict(
                "the subscription has another delivery under way; try again later"
            ) from error
