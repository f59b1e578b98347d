from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest
from msgspec.structs import replace

from hub.core.delivery.delivery_outcome import DeliveryOutcome
from hub.delivery.acknowledgements import Acknowledgements
from hub.runtime.metrics import Metrics
from storage.contract import DeliveryStore
from storage.errors import StorageBusy, StorageClosed, StorageFull, TermEnded
from storage.records import (
    ChunkOutcome,
    DeliveryFlush,
    Flushed,
    Position,
    RetryMoved,
    SubscriptionId,
)
from tests.support.clock import ManualClock
from tests.support.subscriptions import START
from tests.support.waiting import eventually, in_background


class FlushedInto:
    """The one method of the store that is used; fails as often as it is told to."""

    def __init__(self) -> None:
        self.flushes: list[DeliveryFlush] = []
        self.failures: list[Exception] = []
        self.tries = 0

    async def flush(self, flush: DeliveryFlush) -> Flushed:
        self.tries += 1
        if self.failures:
            raise self.failures[0]
        self.flushes.append(flush)
        return Flushed(lost=frozenset({SubscriptionId(9)}))


@asynccontextmanager
async def running(
    store: FlushedInto,
) -> AsyncIterator[tuple[Acknowledgements, asyncio.Task[None]]]:
    gathered = Acknowledgements(
        cast("DeliveryStore", store), ManualClock(), retry_seconds=0.01
    )
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(gathered.run())
        yield gathered, task
        gathered.stop()


def outcome(index: int) -> DeliveryOutcome:
    return DeliveryOutcome(
        outcome=ChunkOutcome(
            chunk_id=1, lease_id=2, index=index, status=200, milliseconds=3
        )
    )


MOVED = RetryMoved(
    subscription_id=SubscriptionId(1),
    lease_id=2,
    position=Position(10),
    attempts=0,
    next_try=START,
    last_status=200,
)


async def test_what_comes_within_100_ms_is_one_transaction() -> None:
    store = FlushedInto()
    async with running(store) as (gathered, _):
        futures = [gathered.add(outcome(index)) for index in range(500)]
        await futures[-1]
        assert [len(each.outcomes) for each in store.flushes] == [500]
        assert all(future.done() for future in futures)


async def test_nothing_is_written_when_nothing_happened() -> None:
    store = FlushedInto()
    async with running(store):
        await asyncio.sleep(0)
    assert store.tries == 0


async def test_the_writer_of_a_settlement_learns_whose_lease_was_lost() -> None:
    async with running(FlushedInto()) as (gathered, _):
        flushed = await gathered.add(outcome(0))
        assert flushed.lost == {9}


async def test_moves_of_a_retry_are_written_in_order() -> None:
    store = FlushedInto()
    async with running(store) as (gathered, _):
        gathered.add(DeliveryOutcome(moved=MOVED))
        later = replace(MOVED, position=Position(11))
        await gathered.add(DeliveryOutcome(moved=later))
    assert [each.moved for each in store.flushes] == [(MOVED, later)]


@pytest.mark.parametrize(
    "error", [StorageFull("disk full"), StorageBusy("busy"), TermEnded("hub", 1)]
)
async def test_a_full_disk_loses_nothing_and_shows(error: Exception) -> None:
    store = FlushedInto()
    store.failures = [error]
    async with running(store) as (gathered, _):
        first = gathered.add(outcome(0))
        await eventually(lambda: store.tries >= 3)
        assert not gathered.healthy
        second = gathered.add(outcome(1))
        assert not first.done()
        store.failures.clear()
        await second
        await gathered.until_healthy()
    indexes = [each.index for flush in store.flushes for each in flush.outcomes]
    assert indexes == [0, 1]


async def test_stopping_writes_what_is_left() -> None:
    store = FlushedInto()
    async with running(store) as (gathered, _):
        gathered.add(outcome(0))
        gathered.stop()
    assert len(store.flushes) == 1


async def test_stopping_does_not_wait_for_a_full_disk() -> None:
    store = FlushedInto()
    store.failures = [StorageFull("disk full")]
    async with running(store) as (gathered, task):
        gathered.add(outcome(0))
        await eventually(lambda: not gathered.healthy)
        gathered.stop()
        await task
    assert store.flushes == []


async def test_a_closed_database_ends_it() -> None:
    store = FlushedInto()
    store.failures = [StorageClosed("closed")]
    gathered = Acknowledgements(cast("DeliveryStore", store), ManualClock())
    gathered.add(outcome(0))
    with pytest.raises(StorageClosed):
        await gathered.run()


async def test_a_loop_that_was_busy_for_100_ms_keeps_nobody_waiting_for_more() -> None:
    store, clock, metrics = FlushedInto(), ManualClock(), Metrics()
    gathered = Acknowledgements(cast("DeliveryStore", store), clock, metrics)
    async with in_background(gathered.run):
        written = gathered.add(outcome(0))
        clock.advance(0.817)
        for _ in range(10):  # turns of the loop, none of which waits
            await asyncio.sleep(0)
        assert written.done()

    [family] = [
        each
        for each in metrics.families()
        if each.name == "fanfare_acknowledgement_seconds"
    ]
    assert [each.value for each in family.samples if each.suffix == "_sum"] == [0.817]
