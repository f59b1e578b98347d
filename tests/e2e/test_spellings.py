"""One feed under many spellings of its URL, from the first subscriber to the last."""

from __future__ import annotations

from pathlib import Path

from tests.support.command import fanfare, knowing
from tests.support.publisher import Document
from tests.support.subscribers import Subscriber
from tests.support.waiting import eventually
from tests.support.websub import WebSubScene, topic_document, websub_scene


def spelled(topic: Document, callback: Subscriber) -> list[tuple[str, str]]:
    """A subscription to the topic in capitals."""
    url = topic.url.replace("http://", "HTTP://")
    return [
        ("hub.mode", "subscribe"),
        ("hub.topic", url),
        ("hub.callback", callback.url),
        ("hub.lease_seconds", "3600"),
    ]


def self_link(callback: Subscriber) -> str:
    """Of the latest delivery."""
    for part in callback.deliveries[-1].headers["link"].split(","):
        if 'rel="self"' in part:
            return part.partition("<")[2].partition(">")[0]
    return ""


async def subscribe_in_capitals(
    scene: WebSubScene, topic: Document, callback: Subscriber
) -> None:
    answer = await scene.post(spelled(topic, callback))
    assert answer.status == 202
    await scene.until(answer, "verified")


async def test_two_spellings_are_one_request_and_both_subscribers_get_their_own(
    tmp_path: Path,
) -> None:
    async with websub_scene(tmp_path) as scene:
        topic = scene.topic()
        plain, with_part, capital = (scene.callback() for _ in range(3))
        part = f"{topic.url}#part"
        capitals = topic.url.replace("http://", "HTTP://")

        await scene.api.add_feed(part)
        await scene.api.subscribe(callback=plain.url, topic=topic.url)
        await scene.api.subscribe(callback=with_part.url, topic=part)
        await subscribe_in_capitals(scene, topic, capital)
        assert len(topic.requests) == 1
        assert capital.questions[0].query["hub.topic"] == capitals

        topic.body = topic_document(2, 1)
        ping = [("hub.mode", "publish"), ("hub.url", capitals)]
        assert (await scene.post(ping)).status == 204
        callbacks = {topic.url: plain, part: with_part, capitals: capital}
        await eventually(lambda: all(each.deliveries for each in callbacks.values()))

        for url, callback in callbacks.items():
            assert self_link(callback) == url
        assert len(topic.requests) == 2
        assert all("#" not in each.target for each in topic.requests)


async def test_a_feed_is_looked_up_listened_to_and_removed_under_any_spelling(
    tmp_path: Path,
) -> None:
    async with websub_scene(tmp_path) as scene:
        topic, callback = scene.topic(), scene.callback()
        part = topic.url.replace("http://", "HTTP://") + "#part"
        feed_id = await scene.api.add_feed(topic.url)
        await subscribe_in_capitals(scene, topic, callback)
        variables = knowing(scene.hub)

        shown = await fanfare("feeds", "show", part, variables=variables)
        assert f"url                 {topic.url}\n" in shown.out
        again = await fanfare("feeds", "add", part, variables=variables)
        assert f"(feed {feed_id})" in again.out
        await listen(scene, topic, part)

        assert (await fanfare("feeds", "remove", part, variables=variables)).code == 0
        await eventually(lambda: callback.modes[-1] == "denied")
        denied = callback.questions[-1].query["hub.topic"]
        assert denied == topic.url.replace("http://", "HTTP://")


async def listen(scene: WebSubScene, topic: Document, url: str) -> None:
    address = f"{scene.hub.url}/stream".replace("http", "ws", 1)
    async with scene.api.session.ws_connect(address, params={"topic": url}) as socket:
        assert (await socket.receive_json())["topic"] == url
        await scene.publish(topic)
        told = await socket.receive_json()
        assert (told["type"], told["topic"]) == ("notification", url)
