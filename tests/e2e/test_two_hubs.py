"""One hub follows what another one publishes, and is pushed by it."""

from __future__ import annotations

from pathlib import Path

from tests.support.upstream_hub import upstream_process, upstream_scene


async def test_a_hub_is_pushed_by_another_without_a_poll(tmp_path: Path) -> None:
    near, far = tmp_path / "near", tmp_path / "far"
    near.mkdir()
    far.mkdir()
    async with (
        upstream_process(far) as publishing,
        upstream_scene(publishing) as publisher,
        upstream_process(near) as following,
        upstream_scene(following) as follower,
    ):
        publisher.links = ""
        source = await publisher.add_feed()
        topic = f"{publishing.url}/topics/{source}.atom"
        copy = await follower.api.add_feed(topic)
        push = await follower.until(copy, lambda push: push["state"] == "subscribed")
        assert (push["hub"], push["topic"]) == (f"{publishing.url}/hub", topic)

        publisher.entries = ["two", "one"]
        await publisher.api.fetch(source)
        push = await follower.until(copy, lambda push: push["pushed_at"] is not None)
        await follower.until_titles(copy, "one", "two")
        assert (push["brought"], push["foreign"]) == (1, 0)
