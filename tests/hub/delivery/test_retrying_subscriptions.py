from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from random import Random
from typing import cast

from hub.core.delivery.catch_up_outcomes import CatchUpProgress
from hub.delivery.acknowledgements import Acknowledgements
from hub.delivery.catch_ups import CatchUps, RetryingSubscriptions
from hub.runtime.background import DrainingTaskGroup
from hub.runtime.work_leases import WorkLeases
from storage.contract import DeliveryStore
from storage.errors import StorageError, StorageFull
from storage.records import ClaimTerms, Position, RetryingSubscription, SubscriptionId
from tests.support.clock import ManualClock
from tests.support.subscriptions import START, a_subscription
from tests.support.waiting import eventually


class DueRetries:
    def __init__(self, count: int) -> None:
        self.waiting = [
            RetryingSubscription(
                subscription=a_subscription(id=SubscriptionId(number)),
                position=Position(1),
                attempts=1,
                next_try=START,
                failing_since=START,
                last_status=500,
                last_error="answered 500",
            )
            for number in range(count)
        ]
        self.failures = 0
        self.read_failures: list[StorageError] = []

    async def next_retry(self) -> datetime | None:
        if self.read_failures:
            raise self.read_failures.pop()
        return self.waiting[0].next_try if self.waiting else None

    async def claim_retrying(self, terms: ClaimTerms) -> list[RetryingSubscription]:
        if self.failures:
            self.failures -= 1
            raise StorageFull("disk full")
        claimed = self.waiting[: terms.limit]
        self.waiting = self.waiting[terms.limit :]
        return claimed


class HeldCatchUps:
    """Each running lasts until it is let go; it can be made to hang before."""

    def __init__(self) -> None:
        self.are_waited_for = False
        self.asides: list[Callable[[], None]] = []
        self.ends: list[asyncio.Event] = []

    async def run(
        self, catch_up: CatchUpProgress, expires: float, on_slow: Callable[[], None]
    ) -> None:
        self.asides.append(on_slow)
        self.ends.append(end := asyncio.Event())
        await end.wait()


@asynccontextmanager
async def running(store: DueRetries) -> AsyncIterator[HeldCatchUps]:
    """At work with two places."""
    clock, catch_ups = ManualClock(), HeldCatchUps()
    deliveries = cast("DeliveryStore", store)
    async with DrainingTaskGroup() as tasks:
        retries = RetryingSubscriptions(
            deliveries,
            clock,
            cast("CatchUps", catch_ups),
            Acknowledgements(deliveries, clock),
            WorkLeases(clock, Random(1)),
            tasks=tasks,
            limit=2,
        )
        task = asyncio.create_task(retries.run())
        try:
            yield catch_ups
        finally:
            task.cancel()
            await asyncio.wait({task})
            await tasks.drain(0.0)


async def test_only_so_many_are_in_hand_and_an_end_makes_room() -> None:
    async with running(DueRetries(5)) as catch_ups:
        await eventually(lambda: len(catch_ups.ends) == 2)
        catch_ups.ends[0].set()
        await eventually(lambda: len(catch_ups.ends) == 3)


async def test_one_that_hangs_makes_room_once() -> None:
    async with running(DueRetries(5)) as catch_ups:
        await eventually(lambda: len(catch_ups.ends) == 2)
        catch_ups.asides[0]()
        catch_ups.asides[0]()
        await eventually(lambda: len(catch_ups.ends) == 3)
        catch_ups.ends[0].set()
        catch_ups.ends[1].set()
        await eventually(lambda: len(catch_ups.ends) == 4)
        assert sum(not end.is_set() for end in catch_ups.ends) == 2


async def test_those_in_hand_are_waited_for_as_long_as_more_are_due() -> None:
    store = DueRetries(3)
    async with running(store) as catch_ups:
        await eventually(lambda: catch_ups.are_waited_for)
        catch_ups.ends[0].set()
        await eventually(lambda: len(catch_ups.ends) == 3)
        await eventually(lambda: not catch_ups.are_waited_for)


async def test_a_database_that_cannot_say_who_waits_is_asked_again() -> None:
    store = DueRetries(3)
    async with running(store) as catch_ups:
        await eventually(lambda: len(catch_ups.ends) == 2)
        store.read_failures.append(StorageError("disk I/O error"))
        await eventually(lambda: not store.read_failures)
        await eventually(lambda: catch_ups.are_waited_for)


async def test_a_database_that_takes_no_writes_is_asked_again() -> None:
    store = DueRetries(1)
    store.failures = 1
    async with running(store) as catch_ups:
        await eventually(lambda: len(catch_ups.ends) == 1)


async def test_a_database_that_cannot_be_read_is_asked_again() -> None:
    store = DueRetries(1)
    store.read_failures.append(StorageError("disk I/O error"))
    async with running(store) as catch_ups:
        await eventually(lambda: len(catch_ups.ends) == 1)
