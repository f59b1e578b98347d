"""How far a subscription is behind, on every engine."""

from __future__ import annotations

from storage.records import (
    DeliveryLag,
    NewDeadLetter,
    Position,
    RecordKind,
    Subscription,
    SubscriptionId,
    Updates,
)
from tests.support.storage_scene import START, Scene, all_of, at, outcome_of

NONE = DeliveryLag(records=0)


async def lag(scene: Scene, whose: Subscription, most: int = 99) -> DeliveryLag:
    return await scene.storage.deliveries.lag(whose.id, most)


async def test_who_has_all_lacks_nothing(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.publish(feed, "before")
    subscription = await scene.subscribe(feed)
    assert await lag(scene, subscription) == NONE
    await scene.publish(feed, "a")
    await scene.deliver()
    assert await lag(scene, subscription) == NONE
    assert await scene.storage.deliveries.lag(SubscriptionId(99), 9) == NONE


async def test_what_fan_out_or_a_chunk_still_has_is_lacked(scene: Scene) -> None:
    feed = await scene.add_feed()
    served, waiting = await scene.subscribe(feed, "a"), await scene.subscribe(feed, "b")
    for second in (1, 2):
        await scene.publish(feed, f"{second}", when=at(second))
    assert await lag(scene, waiting) == DeliveryLag(records=2, oldest=at(1))

    (chunk,) = await scene.claim()
    assert await lag(scene, waiting) == DeliveryLag(records=2, oldest=at(1))
    await scene.flush(outcomes=(outcome_of(chunk, 0),))

    assert await lag(scene, served) == DeliveryLag(records=1, oldest=at(2))
    assert await lag(scene, waiting) == DeliveryLag(records=2, oldest=at(1))
    await scene.flush(outcomes=all_of(chunk))
    assert await lag(scene, waiting) == DeliveryLag(records=1, oldest=at(2))


async def test_who_is_retried_or_paused_lacks_what_it_wants_of_what_came(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    paused = await scene.subscribe(feed, "paused", updates=Updates.NONE)
    await scene.storage.subscriptions.pause(paused.id, START)
    await scene.publish(feed, "b", when=at(2))
    await scene.publish(feed, "b", when=at(3), kind=RecordKind.UPDATED)
    await scene.deliver(at(3))

    assert await lag(scene, late) == DeliveryLag(records=3, oldest=START)
    assert await lag(scene, late, most=2) == DeliveryLag(records=2, oldest=START)
    assert await lag(scene, paused) == DeliveryLag(records=1, oldest=at(2))


async def test_what_was_delivered_before_a_dead_letter_is_retried_is_not_lacked(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    (claimed,) = await scene.claim_retrying(at(5))
    lost = NewDeadLetter(
        subscription_id=late.id,
        lease_id=claimed.lease_id,
        first=Position(1),
        last=Position(1),
        reason="gave up",
        at=at(5),
    )
    await scene.flush(given_up=(lost,))
    assert await lag(scene, late) == NONE
    await scene.publish(feed, "b", when=at(6))
    await scene.deliver(at(6))

    await scene.storage.deliveries.retry_dead_letter(1, at(7))

    assert await lag(scene, late) == DeliveryLag(records=1, oldest=START)


async def test_who_has_ended_is_owed_nothing(scene: Scene) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())
    await scene.storage.subscriptions.end(late.id, "enough", START, tell=False)
    assert await lag(scene, late) == NONE
