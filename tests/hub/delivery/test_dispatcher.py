"""What the dispatcher promises while nothing is in the way."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import orjson
import pytest

from hub.delivery.dispatcher import DeliveryLimits
from protocols.model import Entry
from storage.records import Format, RecordKind, Updates
from tests.support.clock import ManualClock
from tests.support.delivery_scene import HUB_URL, DeliveryScene, delivery_scene
from tests.support.http_server import ServerAnswer, ServerRequest
from tests.support.waiting import eventually


def titles(request: ServerRequest) -> list[str]:
    return [item["title"] for item in orjson.loads(request.body)["items"]]


async def settled(scene: DeliveryScene) -> None:
    await eventually(scene.is_settled)


def at_once(
    directory: Path, limits: DeliveryLimits | None = None
) -> AbstractAsyncContextManager[DeliveryScene]:
    """By its clock no answer takes any time: on a busy machine one may take a second,
    and what has waited for that long may come twice."""
    return delivery_scene(directory, clock=ManualClock(), limits=limits)


async def test_a_record_reaches_its_subscriber_signed(tmp_path: Path) -> None:
    async with delivery_scene(tmp_path) as scene, scene.dispatching():
        feed = await scene.add_feed()
        await scene.subscribe(feed, "a", query="?b=c", secret="s3cret")
        await scene.publish(feed, "First", "Second")
        await scene.subscribers.until_count("a", 1)
        (request,) = scene.subscribers.requests
        assert request.target == "/a?b=c"
        assert request.method == "POST"
        assert titles(request) == ["First", "Second"]
        assert request.headers["content-type"] == "application/json; charset=utf-8"
        assert f'<{HUB_URL}>; rel="hub"' in request.headers["link"]
        assert '<https://feeds.example/1>; rel="self"' in request.headers["link"]
        assert request.is_signed_with("s3cret")
        await settled(scene)


async def test_a_signature_matches_that_subscriptions_secret_only(
    tmp_path: Path,
) -> None:
    async with delivery_scene(tmp_path) as scene, scene.dispatching():
        feed = await scene.add_feed()
        for number in range(20):
            secret = f"secret {number}" if number else ""
            await scene.subscribe(feed, str(number), secret=secret)
        await scene.publish(feed)
        await scene.subscribers.until(lambda: len(scene.subscribers.requests) == 20)
        for sender in range(20):
            (request,) = scene.subscribers[str(sender)].deliveries
            matching = [n for n in range(20) if request.is_signed_with(f"secret {n}")]
            assert matching == ([sender] if sender else [])
        assert "x-hub-signature" not in scene.subscribers["0"].deliveries[0].headers


async def test_order_is_kept_under_many_quick_records_without_duplicates(
    tmp_path: Path,
) -> None:
    async with at_once(tmp_path) as scene, scene.dispatching():
        feed = await scene.add_feed()
        for number in range(10):
            await scene.subscribe(feed, str(number))
            scene.subscribers[str(number)].answer(ServerAnswer(delay=0.003 * number))
        for number in range(15):
            await scene.publish(feed, f"Entry {number}")
        await scene.subscribers.until(
            lambda: len(scene.subscribers.requests) >= 150, seconds=60
        )
        await settled(scene)
        for number in range(10):
            got = [
                title
                for each in scene.subscribers[str(number)].deliveries
                for title in titles(each)
            ]
            assert got == [f"Entry {number}" for number in range(15)]
            assert scene.subscribers[str(number)].most_open == 1


async def test_a_thousand_callbacks_get_one_request_each(tmp_path: Path) -> None:
    async with at_once(tmp_path) as scene, scene.dispatching():
        feed = await scene.add_feed()
        for number in range(1_000):
            await scene.subscribe(feed, str(number))
        await scene.publish(feed)
        await scene.subscribers.until(
            lambda: len(scene.subscribers.requests) >= 1_000, seconds=60
        )
        await settled(scene)
        assert Counter(scene.subscribers.counts) == {1: 1_000}


async def test_news_of_a_large_topic_do_not_hold_up_those_of_another(
    tmp_path: Path,
) -> None:
    limits = DeliveryLimits(requests=2)
    async with at_once(tmp_path, limits) as scene:
        large, small = await scene.add_feed(1), await scene.add_feed(2)
        for number in range(400):
            await scene.subscribe(large, str(number))
        await scene.subscribe(small, "small")
        await scene.publish(large)
        await scene.publish(small)
        async with scene.dispatching():
            await scene.subscribers.until_count("small", 1)
            assert len(scene.subscribers.requests) < 400
            await settled(scene)
        assert Counter(scene.subscribers.counts) == {1: 401}


async def test_a_subscriber_gets_only_its_feeds_records_from_then_on(
    tmp_path: Path,
) -> None:
    async with delivery_scene(tmp_path) as scene, scene.dispatching():
        mine, other = await scene.add_feed(1), await scene.add_feed(2)
        await scene.publish(mine, "Before")
        await scene.subscribe(mine, "mine")
        await scene.subscribe(other, "other")
        await scene.publish(mine, "Mine")
        await scene.publish(other, "Other")
        await scene.subscribers.until(lambda: len(scene.subscribers.requests) == 2)
        await settled(scene)
        assert [titles(each) for each in scene.subscribers["mine"].deliveries] == [
            ["Mine"]
        ]
        assert [titles(each) for each in scene.subscribers["other"].deliveries] == [
            ["Other"]
        ]


async def test_as_is_subscribers_get_the_document_untouched(tmp_path: Path) -> None:
    document = ("application/rss+xml; charset=ISO-8859-1", b"<rss>\xe9</rss>")
    async with delivery_scene(tmp_path) as scene, scene.dispatching():
        feed = await scene.add_feed()
        await scene.subscribe(feed, "raw", format=Format.AS_IS, secret="k")
        await scene.subscribe(feed, "atom", format=Format.ATOM)
        entry = Entry(key="1", id="1", title="One")
        await scene.commit(feed, RecordKind.ERROR, [])
        await scene.commit(feed, RecordKind.ENTRIES, [entry], document=document)
        await scene.subscribers.until_count("atom", 2)
        await settled(scene)
        (raw,) = scene.subscribers["raw"].deliveries
        assert (raw.headers["content-type"], raw.body) == document
        assert raw.is_signed_with("k")
        status, atom = scene.subscribers["atom"].deliveries
        assert atom.headers["content-type"] == "application/atom+xml"
        assert b"<entry" not in status.body
        assert b"<entry" in atom.body


async def test_a_document_that_is_sent_for_an_earlier_record_is_not_sent_again(
    tmp_path: Path,
) -> None:
    async with delivery_scene(tmp_path) as scene:
        feed = await scene.add_feed()
        await scene.subscribe(feed, "raw", format=Format.AS_IS)
        await scene.subscribe(feed, "json")
        for number in range(1, 4):
            entry = Entry(key=f"{number}", id=f"{number}")
            document = ("text/xml", b"<%d/>" % number)
            last = await scene.commit(
                feed, RecordKind.ENTRIES, [entry], document=document
            )
        async with scene.dispatching():
            await scene.subscribers.until_count("json", 3)
            await settled(scene)
        (raw,) = scene.subscribers["raw"].deliveries
        assert raw.body == b"<3/>"
        assert raw.headers["webhook-id"].split("-")[-2] == str(last)


@pytest.mark.parametrize(
    ("updates", "kinds"),
    [
        (Updates.NONE, []),
        (Updates.FRESH, ["fresh"]),
        (Updates.ALL, ["fresh", "stale", "deleted"]),
    ],
)
async def test_updates_reach_those_who_ask(
    tmp_path: Path, updates: Updates, kinds: list[str]
) -> None:
    async with delivery_scene(tmp_path) as scene, scene.dispatching():
        feed = await scene.add_feed()
        await scene.subscribe(feed, "a", updates=updates)
        entry = Entry(key="1", id="1", title="One")
        await scene.commit(feed, RecordKind.BASELINE, [entry])
        await scene.commit(feed, RecordKind.UPDATED, [entry])
        await settled(scene)
        await scene.commit(feed, RecordKind.UPDATED, [entry], fresh=False)
        await settled(scene)
        await scene.commit(feed, RecordKind.DELETED, [entry], deleted=True)
        await scene.publish(feed, "The end")
        await settled(scene)
        assert len(scene.subscribers["a"].deliveries) == len(kinds) + 1
        assert titles(scene.subscribers["a"].deliveries[-1]) == ["The end"]
