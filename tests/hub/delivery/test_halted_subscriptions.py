from __future__ import annotations

import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any, cast

import orjson
import pytest

from hub.core.delivery.catch_up_outcomes import CatchUpProgress
from hub.core.delivery.delivery_outcome import CallbackResponse
from hub.delivery.acknowledgements import Acknowledgements
from hub.delivery.catch_ups import CatchUpRequests, CatchUps
from hub.delivery.halted_subscriptions import HaltedSubscriptions
from hub.delivery.notifications import Notifications
from hub.delivery.webhook import Poster
from hub.runtime.work_leases import WorkLeases
from storage.contract import DeliveryStore, LogStore, Storage
from storage.records import (
    ClaimedChunk,
    ClaimTerms,
    DecisionsMissed,
    Position,
    Subscription,
    SubscriptionId,
)
from tests.support.clock import ManualClock
from tests.support.delivery_scene import delivery_scene
from tests.support.live_scene import FakeLog
from tests.support.subscriptions import a_record, a_subscription
from tests.support.waiting import eventually

ONE, OTHER = SubscriptionId(1), SubscriptionId(2)


def of(subscription_id: int, *, since: int) -> Subscription:
    """As it is read when something is claimed for it."""
    return a_subscription(
        id=SubscriptionId(subscription_id), from_position=Position(since)
    )


def test_what_was_claimed_before_an_ending_is_over() -> None:
    halted = HaltedSubscriptions()

    halted.note_endings([ONE], Position(5))

    assert halted.has_ended(of(ONE, since=4))
    assert not halted.has_ended(of(OTHER, since=4))


def test_who_begins_anew_where_it_ended_is_another() -> None:
    halted = HaltedSubscriptions()
    halted.note_endings([ONE], Position(5))
    assert not halted.has_ended(of(ONE, since=5))

    halted.note_endings([ONE], Position(6))

    assert halted.has_ended(of(ONE, since=5))


def test_the_oldest_endings_are_forgotten() -> None:
    halted = HaltedSubscriptions(capacity=2)
    halted.note_endings([ONE, OTHER], Position(1))
    halted.note_endings([ONE], Position(2))
    halted.note_endings([SubscriptionId(3)], Position(3))

    kept = [each for each in (1, 2, 3) if halted.has_ended(of(each, since=0))]

    assert kept == [1, 3]


def test_who_is_paused_is_so_until_it_is_resumed_or_ends() -> None:
    halted = HaltedSubscriptions()
    for each in (ONE, OTHER):
        halted.note_pause(each, True)
        assert halted.is_paused(of(each, since=4))

    halted.note_pause(ONE, False)
    halted.note_endings([OTHER], Position(5))

    assert not halted.is_paused(of(ONE, since=4))
    assert not halted.is_paused(of(OTHER, since=5))  # which began anew


def test_the_oldest_pauses_are_forgotten() -> None:
    halted = HaltedSubscriptions(capacity=2)
    for each in (1, 2, 1, 3):
        halted.note_pause(SubscriptionId(each), True)

    kept = [each for each in (1, 2, 3) if halted.is_paused(of(each, since=0))]

    assert kept == [1, 3]


@pytest.mark.parametrize("order", [1, -1])
def test_what_is_remembered_is_bounded_and_small(order: int) -> None:
    """Bytes for each, also after three times as many, in whatever order."""
    capacity = 10_000
    halted = HaltedSubscriptions(capacity=capacity)
    ids = [SubscriptionId(10**6 + 7 * number) for number in range(3 * capacity)][
        ::order
    ]
    tracemalloc.start()
    try:
        for each in ids:
            halted.note_pause(each, True)
        size, _peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert size / capacity < 20
    held = [
        halted.is_paused(of(each, since=0)) for each in (ids[0], ids[-capacity // 2])
    ]
    assert held == [False, True]


class InterruptedClaims:
    """The store of a storage; ``meanwhile`` happens while its next claim is made."""

    def __init__(self, storage: Storage) -> None:
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        self._storage = storage

    def __getattr__(self, name: str) -> object:
        return getattr(self._storage.deliveries, name)

    async def claim_chunks(self, terms: ClaimTerms) -> list[ClaimedChunk]:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        return await self._storage.deliveries.claim_chunks(terms)


class StorageWith:
    """A storage with other deliveries."""

    def __init__(self, storage: Storage, deliveries: InterruptedClaims) -> None:
        self._storage = storage
        self.deliveries = deliveries

    def __getattr__(self, name: str) -> object:
        return getattr(self._storage, name)


async def test_who_begins_anew_while_chunks_are_claimed_gets_what_comes_then(
    tmp_path: Path,
) -> None:
    async with delivery_scene(tmp_path) as scene:
        feed = await scene.add_feed()
        subscription = await scene.subscribe(feed, "a")
        storage, claims = scene.storage, InterruptedClaims(scene.storage)
        scene.storage = cast("Storage", StorageWith(storage, claims))

        async def begin_anew() -> None:
            await storage.subscriptions.end(
                subscription.id, "enough", scene.clock.now(), tell=False
            )
            await scene.subscribe(feed, "a")
            await scene.publish(feed, "Since then")

        await scene.publish(feed, "Before")
        claims.meanwhile = begin_anew
        async with scene.dispatching():
            await scene.subscribers.until_count("a", 1)
            await eventually(scene.is_settled)

        (request,) = scene.subscribers["a"].deliveries
        assert [each["title"] for each in orjson.loads(request.body)["items"]] == [
            "Since then"
        ]


class FatalPoster:
    """Each subscription ends while its first request is under way."""

    def __init__(self, halted: HaltedSubscriptions) -> None:
        self.posted: list[Position] = []
        self._halted = halted

    def has_room(self, origin: str) -> bool:
        return True

    def admits(self, origin: str) -> bool:
        return True

    async def post(
        self,
        subscription: Subscription,
        document: object,
        position: Position,
        **more: object,
    ) -> CallbackResponse:
        self.posted.append(position)
        self._halted.note_endings([subscription.id], position)
        return CallbackResponse(status=200, milliseconds=1)


class MissingPoster(FatalPoster):
    """While a callback answers, something is decided that cannot be read."""

    async def post(self, *given: Any, **more: object) -> CallbackResponse:
        self.posted.append(given[2])
        self._halted.note(DecisionsMissed("nobody can read it"))
        return CallbackResponse(status=200, milliseconds=1)


@pytest.mark.parametrize("poster_of", [FatalPoster, MissingPoster])
async def test_a_catch_up_goes_no_further_once_its_subscription_has_or_may_have_ended(
    poster_of: type[FatalPoster],
) -> None:
    clock, halted = ManualClock(), HaltedSubscriptions()
    poster = poster_of(halted)
    log = cast("LogStore", FakeLog(*(a_record(number) for number in range(1, 4))))
    catch_ups = CatchUps(
        log,
        clock,
        cast("Poster", poster),
        CatchUpRequests(log, Notifications(log, "https://hub.example/hub")),
        Acknowledgements(cast("DeliveryStore", None), clock),
        WorkLeases(clock, Random(1)),
        Random(1),
        halted,
    )
    progress = CatchUpProgress(
        subscription=a_subscription(), lease_id=5, position=Position(0)
    )

    await catch_ups.run(progress, clock.monotonic() + 60, lambda: None)

    assert poster.posted == [1]
