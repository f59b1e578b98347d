"""Operational events on their way to the operator: by the deliveries of all else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson

from hub.delivery.event_publisher import EventPublisher
from protocols.operational_events import EventType
from storage.records import (
    OPERATOR,
    FeedId,
    FetchCommit,
    NewSubscription,
    OperationalEvent,
    Polling,
    Subscription,
)
from tests.support.clock import ManualClock
from tests.support.delivery_scene import DeliveryScene, delivery_scene
from tests.support.http_server import ServerAnswer
from tests.support.waiting import eventually, in_background

DAY = 86_400.0


async def subscribe_operator(
    scene: DeliveryScene, name: str = "operator", topic: str = "events:*"
) -> Subscription:
    feed = await scene.storage.events.topic(topic, scene.clock.now())
    new = NewSubscription(
        account=OPERATOR,
        topic=topic,
        feed_id=feed.id,
        callback=scene.subscribers[name].url,
        secret="geheim",
    )
    return await scene.storage.subscriptions.add(new, scene.clock.now())


async def happen(scene: DeliveryScene, feed: FeedId, *numbers: int) -> None:
    """An event for each number, which is its code, from one fetch."""
    now = scene.clock.now()
    events = tuple(
        OperationalEvent(type=EventType.FEED_FAILING, at=now, code=number)
        for number in numbers
    )
    await scene.storage.log.commit(
        FetchCommit(
            feed_id=feed, at=now, next_fetch=now, polling=Polling(), events=events
        )
    )


def messages(scene: DeliveryScene, name: str = "operator") -> list[dict[str, Any]]:
    return [
        orjson.loads(request.body) for request in scene.subscribers[name].deliveries
    ]


def codes(scene: DeliveryScene, name: str = "operator") -> list[int]:
    return [each["data"]["code"] for each in messages(scene, name)]


def waiting(
    scene: DeliveryScene, subscription: Subscription, attempts: int
) -> Callable[[], Awaitable[bool]]:
    """Whether it has failed so often, and is to be tried again."""

    async def is_waiting() -> bool:
        found = await scene.storage.deliveries.retrying_subscription(subscription.id)
        return found is not None and (found.lease_id, found.attempts) == (0, attempts)

    return is_waiting


async def test_a_callback_that_fails_until_it_is_given_up_and_then_works_again(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with delivery_scene(tmp_path, clock=clock) as scene, scene.dispatching():
        feed = await scene.add_feed()
        await subscribe_operator(scene)
        failing = await scene.subscribe(feed, "a")
        scene.subscribers["a"].answer(*[ServerAnswer(status=500)] * 11, ServerAnswer())
        first = await scene.publish(feed)
        async with in_background(EventPublisher(scene.storage.events, scene.clock).run):
            for attempts in range(1, 11):
                await eventually(waiting(scene, failing, attempts))
                clock.advance(DAY)
            await scene.subscribers.until_count("operator", 2)
            await scene.publish(feed)
            await scene.subscribers.until_count("operator", 3)

    told = messages(scene)
    assert [each["type"] for each in told] == [
        "subscription.failing",
        "subscription.given_up",
        "subscription.recovered",
    ]
    assert {each["data"]["subscription"] for each in told} == {failing.id}
    assert len({each["data"]["since"] for each in told}) == 1
    assert told[1]["data"]["first"] == first
    assert told[1]["data"]["reason"] == "answered 500 (after 11 tries)"


async def test_an_operator_that_was_away_gets_all_events_in_order(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with delivery_scene(tmp_path, clock=clock) as scene, scene.dispatching():
        feed = await scene.add_feed()
        away = await subscribe_operator(scene)
        await subscribe_operator(scene, "other", "events:feed.*")
        refusals = [ServerAnswer(status=503)] * 2
        scene.subscribers["operator"].answer(*refusals, ServerAnswer())
        async with in_background(EventPublisher(scene.storage.events, scene.clock).run):
            await happen(scene, feed, 1)
            await eventually(waiting(scene, away, 1))
            await happen(scene, feed, 2, 3)
            clock.advance(6)
            await eventually(waiting(scene, away, 2))
            await happen(scene, feed, 4)
            clock.advance(DAY)
            await scene.subscribers.until_count("operator", 6)
            await scene.subscribers.until_count("other", 4)
            await eventually(scene.is_settled)

    assert codes(scene) == [1, 1, 1, 2, 3, 4]
    assert codes(scene, "other") == [1, 2, 3, 4]  # none of the other's failures


async def test_a_flood_of_events_holds_up_no_news(tmp_path: Path) -> None:
    async with delivery_scene(tmp_path) as scene, scene.dispatching():
        feed = await scene.add_feed()
        await subscribe_operator(scene)
        await scene.subscribe(feed, "a")
        await happen(scene, feed, *range(1_000))
        async with in_background(EventPublisher(scene.storage.events, scene.clock).run):
            await scene.subscribers.until_count("operator", 1)
            for number in range(1, 6):
                await scene.publish(feed)
                await scene.subscribers.until_count("a", number)
                backlog = await scene.storage.backlog()
                assert backlog.fanouts <= 51

    assert codes(scene) == [*range(len(codes(scene)))]
    assert len(codes(scene)) < 500


async def test_what_an_operator_was_not_told_before_a_stop_follows_it(
    tmp_path: Path,
) -> None:
    async with delivery_scene(tmp_path) as scene:
        feed = await scene.add_feed()
        await subscribe_operator(scene)
        await happen(scene, feed, 1, 2, 3)
        publisher = EventPublisher(scene.storage.events, scene.clock)
        async with in_background(publisher.run):
            await eventually(lambda: _is_published(scene))
        assert codes(scene) == []
        async with scene.dispatching():
            await scene.subscribers.until_count("operator", 3)
            await eventually(scene.is_settled)
    assert codes(scene) == [1, 2, 3]


async def _is_published(scene: DeliveryScene) -> bool:
    return (await scene.storage.backlog()).fanouts == 3
