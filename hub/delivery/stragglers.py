"""Subscriptions that did not answer in time: claimed when due, and caught up.

Each has one row, leased while it is worked on. It is sent record after record until it
has them all, or fails and waits for its next try, or has failed too often: then what it
did not get becomes a dead range, and each new record is one probe.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from hub.core.delivery.catch_up import CatchUpProgress
from hub.delivery.acknowledgements import Acknowledgements
from hub.delivery.catch_ups import CatchUps
from hub.delivery.leases import Leases
from hub.runtime.background import DrainingTaskGroup
from hub.runtime.clock import Clock
from storage.contract import DeliveryStore
from storage.errors import StorageError
from storage.records import RetryingSubscription

POLL_SECONDS = 0.25
"""How late it may be noticed that a straggler became due."""

log = structlog.get_logger()


class Stragglers:
    """Keeps ``limit`` of them in hand at once, those not counted that hang.

    While more are due than that, they take turns (`CatchUps`).
    """

    def __init__(
        self,
        deliveries: DeliveryStore,
        clock: Clock,
        catch_ups: CatchUps,
        acknowledgements: Acknowledgements,
        leases: Leases,
        *,
        crew: DrainingTaskGroup,
        limit: int,
    ) -> None:
        self._deliveries = deliveries
        self._clock = clock
        self._catch_ups = catch_ups
        self._acknowledgements = acknowledgements
        self._leases = leases
        self._crew = crew
        self._limit = limit
        self._in_hand = 0
        self._freed = asyncio.Event()

    async def run(self) -> None:
        """Claim what is due and start on it, until cancelled."""
        while True:
            await self._acknowledgements.until_healthy()
            room = self._limit - self._in_hand
            claimed = await self._claim(room) if room else []
            for straggler in claimed:
                self._in_hand += 1
                self._crew.start(self._catch_up(straggler))
            await self._rest(is_full=len(claimed) == room)

    async def _claim(self, room: int) -> list[RetryingSubscription]:
        try:
            if not await self._are_due():
                return []
            return await self._deliveries.claim_retrying(self._leases.terms(room))
        except StorageError as error:
            log.warning("stragglers_not_claimed", error=str(error))
            return []

    async def _are_due(self) -> bool:
        """Whether any waits: what is in hand is due when its lease ends."""
        due = await self._deliveries.next_retry()
        return due is not None and due <= self._clock.now()

    async def _catch_up(self, straggler: RetryingSubscription) -> None:
        place = _Place(self._free)
        try:
            await self._catch_ups.pursue(CatchUpProgress.of(straggler), place.free)
        finally:
            place.free()

    async def _rest(self, *, is_full: bool) -> None:
        if not is_full:
            self._catch_ups.are_waited_for = False
            await asyncio.sleep(POLL_SECONDS)
            return
        self._freed.clear()
        while self._in_hand == self._limit:
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await self._freed.wait()
            except TimeoutError:
                await self._look_who_waits()

    async def _look_who_waits(self) -> None:
        try:
            self._catch_ups.are_waited_for = await self._are_due()
        except StorageError as error:
            log.warning("stragglers_not_looked_for", error=str(error))

    def _free(self) -> None:
        self._in_hand -= 1
        self._freed.set()


class _Place:
    """One of the places in hand; freed once, at the end or when a request hangs."""

    def __init__(self, give_back: Callable[[], None]) -> None:
        self._give_back = give_back
        self._is_free = False

    def free(self) -> None:
        if not self._is_free:
            self._is_free = True
            self._give_back()
