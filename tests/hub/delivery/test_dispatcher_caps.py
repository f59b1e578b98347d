"""What the dispatcher does to a callback origin: no more than it can take."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from hub.delivery.origins import HIGHEST_LIMIT
from tests.support.delivery_scene import CappedNetwork, delivery_scene
from tests.support.eventually import eventually
from tests.support.receiver import Script


async def test_an_origin_gets_few_requests_at_once_and_more_as_it_does_well(
    tmp_path: Path,
) -> None:
    async with delivery_scene(tmp_path) as scene:
        scene.network = CappedNetwork(scene.network)
        async with scene.dispatching():
            feed = await scene.add_feed()
            for number in range(300):
                await scene.subscribe(feed, f"/{number}")
                scene.receiver.script(f"/{number}", Script(delay=0.02))
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
                scene.receiver.script(f"/{number}", Script(delay=0.6))
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
    async with delivery_scene(tmp_path) as scene:
        scene.network = CappedNetwork(scene.network)
        async with scene.dispatching():
            feed = await scene.add_feed()
            for number in range(30):
                await scene.subscribe(feed, f"/{number}")
                scene.receiver.script(f"/{number}", Script(status=503))
            await scene.publish(feed)

            async def all_wait() -> bool:
                backlog = await scene.storage.backlog()
                return backlog.stragglers == 30 and not backlog.chunks

            await eventually(all_wait)
            assert len(scene.receiver.requests) < 20
