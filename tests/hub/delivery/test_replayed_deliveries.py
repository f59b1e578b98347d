"""A replay sends a callback again what it had, in order, and then what comes."""

from __future__ import annotations

from pathlib import Path

from storage.records import Position
from tests.support.delivery_scene import delivery_scene
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
