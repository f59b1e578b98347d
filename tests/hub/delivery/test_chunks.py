from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from random import Random
from typing import cast

import pytest

from hub.core.delivery.first_delivery_outcomes import FirstDelivery
from hub.delivery.acknowledgements import Acknowledgements
from hub.delivery.first_deliveries import Chunks, FirstDeliveries, Member, OpenChunk
from hub.delivery.notifications import Notifications
from hub.runtime.work_leases import LEASE_SECONDS, WorkLeases
from storage.contract import DeliveryStore, LogStore
from storage.errors import StorageFull
from storage.records import ClaimedChunk, ClaimTerms, Record, SubscriptionId
from tests.support.clock import ManualClock
from tests.support.live_scene import FakeLog
from tests.support.subscriptions import a_record, a_subscription
from tests.support.waiting import eventually


class ClaimableChunks:
    def __init__(self) -> None:
        self.waiting: list[ClaimedChunk] = []
        self.limits: list[int] = []
        self.renewals: list[tuple[list[int], int]] = []
        self.failure: Exception | None = None
        self.asked: list[ClaimTerms | None] = []
        self._ask: Callable[[], ClaimTerms | None]
        self._give: Callable[[list[ClaimedChunk] | None], None]

    def put(self, number: int, record: Record, members: int = 1) -> None:
        pending = tuple(
            (index, a_subscription(id=SubscriptionId(100 * number + index)))
            for index in range(members)
        )
        self.waiting.append(
            ClaimedChunk(id=number, lease_id=0, record=record, pending=pending)
        )

    async def claim_chunks(self, terms: ClaimTerms) -> list[ClaimedChunk]:
        self.limits.append(terms.limit)
        if self.failure is not None:
            raise self.failure
        return self._claim(terms)

    def _claim(self, terms: ClaimTerms) -> list[ClaimedChunk]:
        claimed = self.waiting[: terms.limit]
        self.waiting = self.waiting[terms.limit :]
        return [
            ClaimedChunk(
                id=each.id,
                lease_id=terms.lease_id,
                record=each.record,
                pending=each.pending,
            )
            for each in claimed
        ]

    @contextmanager
    def claim_with_commits(
        self,
        ask: Callable[[], ClaimTerms | None],
        give: Callable[[list[ClaimedChunk] | None], None],
    ) -> Iterator[None]:
        self._ask, self._give = ask, give
        yield

    def hand_in(self) -> None:
        """A commit, which is not durable yet."""
        self.asked.append(self._ask())

    def commit(self, terms: ClaimTerms | None) -> None:
        """It is durable now."""
        if terms is not None:
            failed = self.failure is not None
            self._give(None if failed else self._claim(terms))

    async def renew(
        self, chunk_ids: Sequence[int], *, lease_id: int, seconds: float, now: datetime
    ) -> None:
        if self.failure is not None:
            raise self.failure
        self.renewals.append((list(chunk_ids), lease_id))


class Taken:
    """Takes what chunks bring, and sends nothing."""

    def __init__(self) -> None:
        self.members: list[Member] = []
        self.skipped: list[FirstDelivery] = []

    def add(self, members: Sequence[Member]) -> None:
        self.members.extend(members)

    def skip(
        self, chunk: OpenChunk, first: FirstDelivery, *, is_wanted: bool = False
    ) -> None:
        self.skipped.append(first)

    def chunks(self) -> list[OpenChunk]:
        return list(dict.fromkeys(member.chunk for member in self.members))


class Scene:
    def __init__(self, *, limit: int = 8) -> None:
        self.clock = ManualClock()
        self.store = ClaimableChunks()
        self.taken = Taken()
        self.log = FakeLog(*(a_record(number) for number in range(1, 10)))
        deliveries = cast("DeliveryStore", self.store)
        self.chunks = Chunks(
            deliveries,
            self.clock,
            Notifications(cast("LogStore", self.log), "https://hub.example/hub"),
            cast("FirstDeliveries", self.taken),
            Acknowledgements(deliveries, self.clock),
            WorkLeases(self.clock, Random(1)),
            limit=limit,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.chunks.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})


async def test_members_are_handed_on_in_order_with_one_document() -> None:
    scene = Scene()
    scene.store.put(1, a_record(1), members=500)
    async with scene.running():
        await eventually(lambda: len(scene.taken.members) == 500)
    assert [each.first.index for each in scene.taken.members] == list(range(500))
    assert len({id(each.document) for each in scene.taken.members}) == 1


async def test_members_for_whom_nothing_is_left_are_skipped() -> None:
    scene = Scene()
    scene.log.put_entry(10, "Gone", revision=2, deleted=True)
    scene.store.put(1, a_record(1), members=3)
    async with scene.running():
        await eventually(lambda: len(scene.taken.skipped) == 3)
    assert scene.taken.members == []


async def test_only_so_many_chunks_are_open_and_a_closed_one_makes_room() -> None:
    scene = Scene(limit=2)
    for number in range(1, 6):
        scene.store.put(number, a_record(number), members=500)
    async with scene.running():
        await eventually(lambda: len(scene.taken.members) == 2 * 500)
        first = scene.taken.chunks()[0]
        first.close(first)
        await eventually(lambda: len(scene.taken.members) == 3 * 500)
    assert scene.store.limits == [1, 1, 1]


async def test_of_small_chunks_as_many_are_open_as_have_the_members_of_large_ones() -> (
    None
):
    scene = Scene(limit=2)
    for number in range(1, 41):
        scene.store.put(number, a_record(1), members=20)
    async with scene.running():
        await eventually(lambda: len(scene.taken.members) == 26 * 20)
        first = scene.taken.chunks()[0]
        first.close(first)
        await eventually(lambda: len(scene.taken.members) == 27 * 20)
    assert len(scene.store.waiting) == 13


async def test_of_the_smallest_chunks_no_more_are_open_than_64_for_each_large_one() -> (
    None
):
    scene = Scene(limit=2)
    for number in range(1, 200):
        scene.store.put(number, a_record(1))
    async with scene.running():
        await eventually(lambda: len(scene.taken.members) == 128)
        first = scene.taken.chunks()[0]
        first.close(first)
        await eventually(lambda: len(scene.taken.members) == 129)
    assert len(scene.store.waiting) == 70


@pytest.mark.parametrize(
    ("members", "limits"),
    [(99, [1, 7, 6]), (100, [1, 2, 4, 6, 6]), (500, [1, 2, 4, 1])],
)
async def test_ever_more_large_chunks_are_claimed_at_once_and_all_small_ones(
    members: int, limits: list[int]
) -> None:
    scene = Scene(limit=8)
    for number in range(1, 9):
        scene.store.put(number, a_record(number), members)
    async with scene.running():
        await eventually(lambda: scene.store.limits == limits)
    assert len(scene.taken.members) == 8 * members


async def test_open_chunks_are_renewed_under_their_own_leases() -> None:
    scene = Scene(limit=2)
    scene.store.put(1, a_record(1))
    async with scene.running():
        await eventually(lambda: len(scene.taken.members) == 1)
        (chunk,) = scene.taken.chunks()
        scene.clock.advance(20)
        await scene.chunks.renew()
        assert scene.store.renewals == [([1], chunk.lease_id)]
        assert chunk.expires == 20 + LEASE_SECONDS


async def test_a_lease_that_cannot_be_renewed_is_not_relied_on() -> None:
    scene = Scene(limit=1)
    scene.store.put(1, a_record(1))
    async with scene.running():
        await eventually(lambda: len(scene.taken.members) == 1)
        (stale,) = scene.taken.chunks()
        scene.store.failure = StorageFull("disk full")
        await scene.chunks.renew()
        assert stale.expires == LEASE_SECONDS
        scene.store.failure = None
        scene.clock.advance(LEASE_SECONDS)
        scene.store.put(1, a_record(1))  # whose lease is over is claimed again
        scene.chunks.wake()
        await eventually(lambda: len(scene.taken.members) == 2)
        fresh = scene.taken.chunks()[-1]
        stale.close(stale)
        await scene.chunks.renew()
        assert scene.store.renewals == [([1], fresh.lease_id)]


async def test_what_is_dropped_is_neither_begun_nor_renewed() -> None:
    """Something was decided that is not known here."""
    scene = Scene(limit=1)
    scene.store.put(1, a_record(1))
    async with scene.running():
        await eventually(lambda: len(scene.taken.members) == 1)
        (dropped,) = scene.taken.chunks()
        scene.chunks.drop_all()
        await scene.chunks.renew()
        assert dropped.expires == scene.clock.monotonic()
        assert scene.store.renewals == []
        scene.store.put(2, a_record(2))
        scene.chunks.wake()
        await eventually(lambda: len(scene.taken.members) == 2)


async def test_a_database_that_takes_no_writes_is_asked_again() -> None:
    scene = Scene()
    scene.store.failure = StorageFull("disk full")
    scene.store.put(1, a_record(1))
    async with scene.running():
        await eventually(lambda: len(scene.store.limits) >= 1)
        scene.store.failure = None
        scene.chunks.wake()
        await eventually(lambda: len(scene.taken.members) == 1)


async def test_a_commit_brings_a_chunk_that_is_begun_without_another_claim() -> None:
    scene = Scene()
    async with scene.running():
        await eventually(lambda: scene.store.limits == [1])
        scene.store.hand_in()
        (terms,) = scene.store.asked
        scene.store.put(1, a_record(1), members=3)
        scene.store.commit(terms)
        await eventually(lambda: len(scene.taken.members) == 3)
        (chunk,) = scene.taken.chunks()
        assert terms is not None
        assert (terms.limit, chunk.lease_id) == (1, terms.lease_id)
        await eventually(lambda: len(scene.store.limits) == 2)  # for the others of it


async def test_a_commit_that_brings_nothing_is_no_reason_to_look() -> None:
    scene = Scene()
    async with scene.running():
        await eventually(lambda: scene.store.limits == [1])
        scene.store.hand_in()
        scene.store.commit(scene.store.asked[0])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert scene.store.limits == [1]


async def test_commits_claim_no_more_than_there_is_room_for() -> None:
    scene = Scene(limit=2)
    async with scene.running():
        await eventually(lambda: scene.store.limits == [1])
        for _ in range(3):
            scene.store.hand_in()
        first, second, third = scene.store.asked
        assert first is not None
        assert second is not None
        assert third is None
        for number in range(1, 4):
            scene.store.put(number, a_record(number))
        scene.store.commit(first)
        scene.store.commit(second)
        await eventually(lambda: len(scene.taken.members) == 3)


async def test_what_a_commit_failed_to_claim_is_claimed_without_it() -> None:
    scene = Scene()
    async with scene.running():
        await eventually(lambda: scene.store.limits == [1])
        scene.store.hand_in()
        scene.store.failure = StorageFull("disk full")
        scene.store.put(1, a_record(1))
        scene.store.commit(scene.store.asked[0])
        scene.store.failure = None
        await eventually(lambda: len(scene.taken.members) == 1)
