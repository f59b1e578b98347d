"""A replay sends a callback again what it had, in order, and then what comes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from storage.records import (
    AttemptReason,
    Position,
    Subscription,
    SubscriptionHealth,
)
from tests.support.delivery_scene import DeliveryScene, delivery_scene
from tests.support.http_server import ServerAnswer
from tests.support.waiting import eventually


async def test_a_callback_gets_again_what_it_had_with_the_ids_of_then(
    tmp_path: Path,
) -> None:
    async with delivery_scene(tmp_path) as scene, scene.dispatching():
        feed = await scene.add_feed()
        subscription = await scene.subscribe(feed, "hook")
        await scene.subscribe(feed, "other")
        for title in ("One", "Two", "Three"):
            await scene.publish(feed, title)
            await eventually(scene.is_settled)
        now = scene.clock.now()
        await scene.storage.deliveries.replay(subscription.id, Position(1), now)
        await eventually(scene.is_settled)
        await scene.publish(feed, "Four")
        await eventually(scene.is_settled)
        hook = scene.subscribers["hook"]
        assert hook.titles == ["One", "Two", "Three", "Two", "Three", "Four"]
        ids = [each.delivery_id for each in hook.receipts]
        assert ids[3:5] == ids[1:3]
        assert scene.subscribers["other"].titles == ["One", "Two", "Three", "Four"]


NEW, CATCH_UP = AttemptReason.NEW_RECORD, AttemptReason.CATCH_UP
AGAIN = AttemptReason.SENT_AGAIN


async def sent(
    scene: DeliveryScene, subscription: Subscription
) -> list[tuple[Position, AttemptReason]]:
    attempts = await scene.storage.deliveries.attempts(subscription.id, 99)
    return [(each.position, each.reason) for each in reversed(attempts)]


async def three(scene: DeliveryScene, **fields: Any) -> Subscription:
    """A subscription that got three records."""
    feed = await scene.add_feed()
    subscription = await scene.subscribe(feed, "hook", **fields)
    for _ in range(3):
        await scene.publish(feed)
        await eventually(scene.is_settled)
    return subscription


async def test_its_requests_say_that_they_were_asked_for_and_later_ones_do_not(
    tmp_path: Path,
) -> None:
    async with delivery_scene(tmp_path) as scene:
        async with scene.dispatching():
            subscription = await three(scene)
        now = scene.clock.now()
        await scene.storage.deliveries.replay(subscription.id, Position(1), now)
        await scene.publish(subscription.feed_id)  # while the hub does nothing
        async with scene.dispatching():
            await eventually(scene.is_settled)
            await scene.publish(subscription.feed_id)
            await eventually(scene.is_settled)
        first = [(1, NEW), (2, NEW), (3, NEW)]
        again = [(2, AGAIN), (3, AGAIN), (4, CATCH_UP)]
        assert await sent(scene, subscription) == [*first, *again, (5, NEW)]


async def test_one_request_for_all_of_it_says_so_even_with_what_is_new(
    tmp_path: Path,
) -> None:
    async with delivery_scene(tmp_path) as scene:
        async with scene.dispatching():
            subscription = await three(scene, batch=True)
        now = scene.clock.now()
        await scene.storage.deliveries.replay(subscription.id, Position(1), now)
        await scene.publish(subscription.feed_id)
        async with scene.dispatching():
            await eventually(scene.is_settled)
        assert (await sent(scene, subscription))[3:] == [(4, AGAIN)]
        assert len(scene.subscribers["hook"].titles) == 3 + 3


async def test_who_was_well_stays_so_unless_a_request_of_it_fails(
    tmp_path: Path,
) -> None:
    async with delivery_scene(tmp_path) as scene, scene.dispatching():
        subscription = await three(scene)
        conditions = scene.storage.subscription_selections.conditions
        [before] = await conditions([subscription.id])
        assert before.health is SubscriptionHealth.OK

        now = scene.clock.now()
        await scene.storage.deliveries.replay(subscription.id, Position(0), now)
        await eventually(scene.is_settled)
        [after] = await conditions([subscription.id])
        assert (after.health, after.since) == (before.health, before.since)

        async def is_failing() -> bool:
            [found] = await conditions([subscription.id])
            return found.health is SubscriptionHealth.FAILING

        scene.subscribers["hook"].answer(ServerAnswer(status=500))
        now = scene.clock.now()
        await scene.storage.deliveries.replay(subscription.id, Position(0), now)
        await eventually(is_failing)
        [refused] = await scene.storage.deliveries.attempts(subscription.id, 1)
        assert (refused.status, refused.reason) == (500, AGAIN)
