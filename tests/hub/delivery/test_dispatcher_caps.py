"""What the dispatcher does to a callback origin: no more than it can take."""

from __future__ import annotations

import asyncio
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
from tests.support.receiver import Receiver
from tests.support.waiting import eventually


async def test_an_origin_gets_few_requests_at_once_and_more_as_it_does_well(
    tmp_path: Path,
) -> None:
    async with delivery_scene(tmp_path) as scene:
        scene.network = CappedNetwork(scene.network)
        async with scene.dispatching():
            feed = await scene.add_feed()
            for number in range(300):
                await scene.subscribe(feed, f"/{number}")
                scene.receiver.serve(f"/{number}", ServerAnswer(delay=0.02))
            await scene.publish(feed)
            await scene.receiver.until(lambda: len(scene.receiver.requests) >= 9)
            assert scene.receiver.most_open_in_all <= 9
            await eventually(scene.is_settled, 20)
        assert Counter(scene.receiver.counts.values()) == {1: 300}
        assert 8 < scene.receiver.most_open_in_all <= HIGHEST_LIMIT


async def test_what_an_origin_has_no_place_for_within_a_second_is_caught_up(
    tmp_path: Path,
) -> None:
    async with delivery_scene(tmp_path) as scene:
        scene.network = CappedNetwork(scene.network)
        async with scene.dispatching():
            feed = await scene.add_feed()
            for number in range(40):
                await scene.subscribe(feed, f"/{number}")
                scene.receiver.serve(f"/{number}", ServerAnswer(delay=0.6))
            await scene.publish(feed)
            await scene.publish(feed)
            await eventually(scene.is_settled, 30)
        assert Counter(scene.receiver.counts.values()) == {2: 40}
        for number in range(40):
            path = f"/{number}"
            assert scene.receiver.most_open[path] == 1
            attempts = scene.receiver.to(path)
            assert "x-superfeedr-retried" not in attempts[-1].headers


async def test_an_origin_in_trouble_is_probed_and_another_is_not_delayed(
    tmp_path: Path,
) -> None:
    async with delivery_scene(tmp_path) as scene, Receiver() as another:
        scene.network = CappedNetwork(scene.network)
        async with scene.dispatching():
            feed = await scene.add_feed()
            for number in range(30):
                await scene.subscribe(feed, f"/{number}")
                scene.receiver.serve(f"/{number}", ServerAnswer(status=503))
            await scene.subscribe(feed, "/well", receiver=another)
            await scene.publish(feed)

            async def all_wait() -> bool:
                backlog = await scene.storage.backlog()
                return backlog.retrying == 30 and not backlog.chunks

            await eventually(all_wait)
            assert len(scene.receiver.requests) < 20

            for count in (2, 3):
                await scene.publish(feed)
                await another.until_count("/well", count)
            assert (await scene.storage.backlog()).retrying == 30


async def test_an_origin_that_recovers_gets_all_it_missed_in_order(
    tmp_path: Path,
) -> None:
    """Probed by one request at a time until one is answered well."""
    async with delivery_scene(tmp_path) as scene:
        scene.network = CappedNetwork(scene.network)
        receiver, paths = scene.receiver, [f"/{number}" for number in range(6)]
        async with scene.dispatching():
            feed = await scene.add_feed()
            for path in paths:
                await scene.subscribe(feed, path)
                receiver.serve(path, ServerAnswer(status=503))
            await scene.publish(feed, "First")
            await scene.publish(feed, "Second")
            await receiver.until(lambda: len(receiver.requests) == len(paths))
            await eventually(partial(_all_wait, scene, len(paths)))
            receiver.most_open_in_all, tried = 0, len(receiver.requests)
            await eventually(partial(_retry_until, scene, tried + 1))
            assert receiver.most_open_in_all == 1

            for path in paths:
                receiver.serve(path, ServerAnswer())
            tried = len(receiver.requests)
            while not await scene.is_settled():
                await _retry_all(scene)
                await asyncio.sleep(0.1)
        told = [
            (each.path, item["title"])
            for each in receiver.requests[tried:]
            for item in orjson.loads(each.body)["items"]
        ]
        both = [(path, title) for path in paths for title in ("First", "Second")]
        assert sorted(told) == sorted(both)
        for path in paths:
            assert [title for to, title in told if to == path] == ["First", "Second"]


async def _all_wait(scene: DeliveryScene, count: int) -> bool:
    backlog = await scene.storage.backlog()
    return backlog.retrying == count and not backlog.chunks


async def _retry_until(scene: DeliveryScene, wanted: int) -> bool:
    await _retry_all(scene)
    return len(scene.receiver.requests) >= wanted


async def _retry_all(scene: DeliveryScene) -> None:
    """As somebody would who cannot wait for the schedule."""
    store, now = scene.storage.deliveries, scene.clock.now()
    for each in await store.retrying(after=SubscriptionId(0), limit=100):
        with suppress(NotFound):
            await store.retry_now(each.subscription.id, now)
