"""What the dispatcher does to a callback origin: no more than it can take."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path

import orjson

from hub.limits.callback_origin_limiter import HIGHEST_LIMIT
from storage.errors import NotFound
from storage.records import SubscriptionId
from tests.support.delivery_scene import CappedNetwork, DeliveryScene, delivery_scene
from tests.support.http_server import ServerAnswer
from tests.support.subscribers import Subscribers
from tests.support.waiting import eventually


async def test_an_origin_gets_few_requests_at_once_and_more_as_it_does_well(
    tmp_path: Path,
) -> None:
    async with delivery_scene(tmp_path) as scene:
        scene.network = CappedNetwork(scene.network)
        async with scene.dispatching():
            feed = await scene.add_feed()
            for number in range(300):
                await scene.subscribe(feed, str(number))
                scene.subscribers[str(number)].answer(ServerAnswer(delay=0.02))
            await scene.publish(feed)
            await scene.subscribers.until(lambda: len(scene.subscribers.requests) >= 9)
            assert scene.subscribers.most_open <= 9
            await eventually(scene.is_settled, 20)
        assert Counter(scene.subscribers.counts) == {1: 300}
        assert 8 < scene.subscribers.most_open <= HIGHEST_LIMIT


async def test_what_an_origin_has_no_place_for_within_a_second_is_caught_up(
    tmp_path: Path,
) -> None:
    async with delivery_scene(tmp_path) as scene:
        scene.network = CappedNetwork(scene.network)
        async with scene.dispatching():
            feed = await scene.add_feed()
            for number in range(40):
                await scene.subscribe(feed, str(number))
                scene.subscribers[str(number)].answer(ServerAnswer(delay=0.6))
            await scene.publish(feed)
            await scene.publish(feed)
            await eventually(scene.is_settled, 30)
        assert Counter(scene.subscribers.counts) == {2: 40}
        for number in range(40):
            one = scene.subscribers[str(number)]
            assert one.most_open == 1
            assert "x-superfeedr-retried" not in one.deliveries[-1].headers


async def test_an_origin_in_trouble_is_probed_and_another_is_not_delayed(
    tmp_path: Path,
) -> None:
    async with delivery_scene(tmp_path) as scene, Subscribers() as another:
        scene.network = CappedNetwork(scene.network)
        async with scene.dispatching():
            feed = await scene.add_feed()
            for number in range(30):
                await scene.subscribe(feed, str(number))
                scene.subscribers[str(number)].answer(ServerAnswer(status=503))
            await scene.subscribe(feed, "well", subscribers=another)
            await scene.publish(feed)

            async def all_wait() -> bool:
                backlog = await scene.storage.backlog()
                return backlog.retrying == 30 and not backlog.chunks

            await eventually(all_wait)
            assert len(scene.subscribers.requests) < 20

            for count in (2, 3):
                await scene.publish(feed)
                await another.until_count("well", count)
            assert (await scene.storage.backlog()).retrying == 30


async def test_an_origin_that_recovers_gets_all_it_missed_in_order(
    tmp_path: Path,
) -> None:
    """Probed by one request at a time until one is answered well."""
    async with delivery_scene(tmp_path) as scene:
        scene.network = CappedNetwork(scene.network)
        subscribers, names = scene.subscribers, [str(number) for number in range(6)]
        async with scene.dispatching():
            feed = await scene.add_feed()
            for name in names:
                await scene.subscribe(feed, name)
                subscribers[name].answer(ServerAnswer(status=503))
            await scene.publish(feed, "First")
            await scene.publish(feed, "Second")
            await subscribers.until(lambda: len(subscribers.requests) == len(names))
            await eventually(partial(_all_wait, scene, len(names)))
            subscribers.most_open, tried = 0, len(subscribers.requests)
            await eventually(partial(_retry_until, scene, tried + 1))
            assert subscribers.most_open == 1

            for name in names:
                subscribers[name].answer(ServerAnswer())
            tried = len(subscribers.requests)
            await eventually(partial(_is_settled_with_retries, scene))
        told = [
            (each.path[1:], item["title"])
            for each in subscribers.requests[tried:]
            for item in orjson.loads(each.body)["items"]
        ]
        both = [(name, title) for name in names for title in ("First", "Second")]
        assert sorted(told) == sorted(both)
        for name in names:
            assert [title for to, title in told if to == name] == ["First", "Second"]


async def _all_wait(scene: DeliveryScene, count: int) -> bool:
    backlog = await scene.storage.backlog()
    return backlog.retrying == count and not backlog.chunks


async def _retry_until(scene: DeliveryScene, wanted: int) -> bool:
    await _retry_all(scene)
    return len(scene.subscribers.requests) >= wanted


async def _is_settled_with_retries(scene: DeliveryScene) -> bool:
    await _retry_all(scene)
    return await scene.is_settled()


async def _retry_all(scene: DeliveryScene) -> None:
    """As somebody would who cannot wait for the schedule."""
    store, now = scene.storage.deliveries, scene.clock.now()
    for each in await store.retrying(after=SubscriptionId(0), limit=100):
        with suppress(NotFound):
            await store.retry_now(each.subscription.id, now)
