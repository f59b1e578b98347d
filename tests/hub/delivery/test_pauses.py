"""Paused callbacks are sent nothing, and lose nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hub.delivery.dispatcher import DeliveryLimits
from protocols.model import Entry
from storage.records import Format, RecordKind, Subscription
from tests.support.clock import ManualClock
from tests.support.delivery_scene import DeliveryScene, delivery_scene
from tests.support.http_server import ServerAnswer
from tests.support.waiting import eventually


async def pause(scene: DeliveryScene, subscription: Subscription) -> None:
    now = scene.clock.now()
    assert await scene.storage.subscriptions.pause(subscription.id, now)


async def resume(scene: DeliveryScene, subscription: Subscription) -> None:
    now = scene.clock.now()
    assert await scene.storage.subscriptions.resume(subscription.id, now)


async def is_split(scene: DeliveryScene) -> bool:
    """Whether all news have found their subscriptions."""
    backlog = await scene.storage.backlog()
    return not (backlog.fanouts or backlog.chunks)


async def until_held(scene: DeliveryScene, paused: Subscription) -> None:
    """Until what it is owed is nobody's, and nothing of it is under way."""

    async def is_held() -> bool:
        late = await scene.storage.deliveries.retrying_subscription(paused.id)
        return late is not None and late.is_paused and not late.lease_id

    await eventually(is_held)


async def test_what_comes_meanwhile_is_sent_in_order_once_it_is_resumed(
    tmp_path: Path,
) -> None:
    async with delivery_scene(tmp_path) as scene, scene.dispatching():
        feed = await scene.add_feed()
        paused = await scene.subscribe(feed, "paused")
        await scene.subscribe(feed, "other")
        await scene.publish(feed, "Before")
        await scene.subscribers.until_count("paused", 1)
        await pause(scene, paused)

        for number in range(5):
            await scene.publish(feed, f"Meanwhile {number}")
        await scene.subscribers.until_count("other", 6)
        await eventually(lambda: is_split(scene))
        assert scene.subscribers["paused"].titles == ["Before"]

        await resume(scene, paused)
        await eventually(scene.is_settled)
        await scene.publish(feed, "Afterwards")
        await eventually(scene.is_settled)
        expected = ["Before", *(f"Meanwhile {each}" for each in range(5)), "Afterwards"]
        assert (
            scene.subscribers["paused"].titles
            == scene.subscribers["other"].titles
            == expected
        )


async def test_what_waits_in_a_chunk_is_kept_for_the_resumption(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    limits = DeliveryLimits(requests=1, grace=0.1)
    async with delivery_scene(tmp_path, clock=clock, limits=limits) as scene:
        feed = await scene.add_feed()
        await scene.subscribe(feed, "first")
        paused = await scene.subscribe(feed, "paused")
        await scene.subscribe(feed, "last")
        scene.subscribers["first"].answer(ServerAnswer(silent=True))
        async with scene.dispatching():
            await scene.publish(feed)
            await scene.subscribers.until_count("first", 1)  # and the others wait
            await pause(scene, paused)
            clock.advance(1.1)
            await scene.subscribers.until_count("last", 1)
            await until_held(scene, paused)
            assert len(scene.subscribers["paused"].receipts) == 0
            await resume(scene, paused)
            await scene.subscribers.until_count("paused", 1)


@pytest.mark.parametrize("delay", [0.2, 1.3], ids=["at once", "in the slow lane"])
async def test_a_request_that_is_under_way_ends_and_counts(
    tmp_path: Path, delay: float
) -> None:
    async with delivery_scene(tmp_path) as scene, scene.dispatching():
        feed = await scene.add_feed()
        paused = await scene.subscribe(feed, "a")
        scene.subscribers["a"].answer(ServerAnswer(delay=delay), ServerAnswer())
        await scene.publish(feed, "One")
        await scene.subscribers.until_count("a", 1)
        await pause(scene, paused)
        await scene.publish(feed, "Two")
        await until_held(scene, paused)
        assert scene.subscribers["a"].titles == ["One"]

        await resume(scene, paused)
        await eventually(scene.is_settled)
        assert scene.subscribers["a"].titles == ["One", "Two"]


async def test_a_request_that_was_under_way_and_failed_is_repeated_when_resumed(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with delivery_scene(tmp_path, clock=clock) as scene, scene.dispatching():
        feed = await scene.add_feed()
        paused = await scene.subscribe(feed, "a")
        slow = ServerAnswer(status=500, delay=0.2)
        scene.subscribers["a"].answer(slow, ServerAnswer())
        await scene.publish(feed)
        await scene.subscribers.until_count("a", 1)
        await pause(scene, paused)
        await until_held(scene, paused)
        clock.advance(3_600)
        (attempt,) = await scene.storage.deliveries.attempts(paused.id, 9)
        assert attempt.status == 500

        await resume(scene, paused)
        await eventually(scene.is_settled)
        first, second = scene.subscribers["a"].deliveries
        assert first.headers["webhook-id"] == second.headers["webhook-id"]


async def test_a_catch_up_stops_within_a_request_and_goes_on_where_it_stopped(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with delivery_scene(tmp_path, clock=clock) as scene, scene.dispatching():
        feed = await scene.add_feed()
        paused = await scene.subscribe(feed, "a")
        await pause(scene, paused)
        for number in range(20):
            await scene.publish(feed, f"Entry {number}")
        await eventually(lambda: is_split(scene))
        scene.subscribers["a"].answer(ServerAnswer(delay=0.05))
        await resume(scene, paused)
        await scene.subscribers.until_count("a", 3)

        await pause(scene, paused)
        begun = len(scene.subscribers["a"].receipts)
        await until_held(scene, paused)
        assert len(scene.subscribers["a"].receipts) <= begun + 1
        assert len(scene.subscribers["a"].receipts) < 20

        await resume(scene, paused)
        await eventually(scene.is_settled)
        assert scene.subscribers["a"].titles == [
            f"Entry {number}" for number in range(20)
        ]
        assert scene.subscribers["a"].most_open == 1


async def test_pausing_and_resuming_all_the_time_sends_each_record_once(
    tmp_path: Path,
) -> None:
    async with delivery_scene(tmp_path) as scene, scene.dispatching():
        feed = await scene.add_feed()
        paused = await scene.subscribe(feed, "a")
        scene.subscribers["a"].answer(ServerAnswer(delay=0.01))
        for number in range(40):
            await scene.publish(feed, f"Entry {number}")
            await (resume if number % 3 else pause)(scene, paused)
            await asyncio.sleep(0)
        await resume(scene, paused)
        await eventually(scene.is_settled)
        assert scene.subscribers["a"].titles == [
            f"Entry {number}" for number in range(40)
        ]
        assert scene.subscribers["a"].most_open == 1


async def test_a_restart_resumes_nothing(tmp_path: Path) -> None:
    async with delivery_scene(tmp_path) as scene:
        feed = await scene.add_feed()
        paused = await scene.subscribe(feed, "a")
        await scene.subscribe(feed, "b")
        await scene.publish(feed)
        await pause(scene, paused)
        for count in (1, 2):
            async with scene.dispatching():
                await scene.subscribers.until_count("b", count)
                await eventually(lambda: is_split(scene))
            await scene.publish(feed)
        assert len(scene.subscribers["a"].receipts) == 0
        await resume(scene, paused)
        async with scene.dispatching():
            await eventually(scene.is_settled)
        assert (
            scene.subscribers["a"].titles
            == scene.subscribers["b"].titles
            == [f"Entry {number}" for number in (1, 2, 3)]
        )


async def test_an_as_is_subscriber_gets_the_latest_document(tmp_path: Path) -> None:
    async with delivery_scene(tmp_path) as scene, scene.dispatching():
        feed = await scene.add_feed()
        paused = await scene.subscribe(feed, "a", format=Format.AS_IS)
        await pause(scene, paused)
        for number in (1, 2, 3):
            entry = Entry(key=f"{number}", id=f"{number}")
            document = ("text/xml", b"<%d/>" % number)
            await scene.commit(feed, RecordKind.ENTRIES, [entry], document=document)
        await eventually(lambda: is_split(scene))
        await resume(scene, paused)
        await eventually(scene.is_settled)
        assert [each.body for each in scene.subscribers["a"].deliveries] == [b"<3/>"]
