"""What operators are told of their hub by webhook, on real sockets, over kills."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import fanfare, knowing
from tests.support.http_server import ServerAnswer
from tests.support.hub_process import HubApi, HubProcess
from tests.support.publisher import PublishedFeed, Publisher
from tests.support.standard_webhooks import Received, verifies
from tests.support.subscribers import Subscriber, Subscribers
from tests.support.waiting import eventually

FAILS = ServerAnswer(status=503)


@dataclass(frozen=True, kw_only=True)
class Message:
    """What an operator has accepted; whether the signature is right is for somebody to
    say who knows no more than the specification."""

    id: str
    type: str
    data: dict[str, Any]
    is_genuine: bool

    @property
    def about(self) -> tuple[str, object]:
        """Its type, and the feed or subscription."""
        return self.type, self.data.get("feed", self.data.get("subscription"))


def accepted_by(operator: Subscriber) -> list[Message]:
    """Each once, as the specification wants it, in order."""
    messages: dict[str, Message] = {}
    for receipt in operator.accepted:
        request = receipt.request
        sent = int(request.headers["webhook-timestamp"])
        received = Received(headers=request.headers, body=request.body, now=sent)
        document = json.loads(request.body)
        messages[receipt.delivery_id] = Message(
            id=receipt.delivery_id,
            type=document["type"],
            data=document["data"],
            is_genuine=verifies(received, operator.secret),
        )
    return [*messages.values()]


@dataclass(frozen=True, kw_only=True)
class Scene:
    hub: HubProcess
    api: HubApi
    publisher: Publisher
    subscribers: Subscribers
    operator: Subscriber
    subscription: int

    @property
    def messages(self) -> list[Message]:
        return accepted_by(self.operator)

    async def add_feed(self) -> tuple[int, PublishedFeed]:
        feed = self.publisher.add_feed()
        return await self.api.add_feed(self.publisher.url(feed)), feed

    async def fetch(self, feed_id: int, *, times: int = 1) -> None:
        for _ in range(times):
            await self.api.fetch(feed_id)

    async def restart(self) -> None:
        await self.hub.start()
        await self.hub.wait_ready()

    async def is_told(self, count: int, *, retrying: int) -> bool:
        """Whether there are so many messages; else the subscription is tried again."""
        await self.api.retry(retrying)
        return len(self.messages) == count

    async def until_told(self, *expected: tuple[str, int]) -> None:
        await eventually(lambda: len(self.messages) >= len(expected), 30)
        assert [each.about for each in self.messages] == [*expected]
        assert all(each.is_genuine for each in self.messages)


@asynccontextmanager
async def subscribed(directory: Path, types: str = "*") -> AsyncIterator[Scene]:
    """A hub whose operator is told of these types, subscribed by the command line."""
    async with (
        Publisher() as publisher,
        Subscribers() as subscribers,
        HubProcess(directory=directory) as hub,
        HubApi(hub.url) as api,
    ):
        operator = subscribers.add("operator")
        made = await fanfare(
            *("events", "subscribe", operator.url, "--types", types, "--json"),
            variables=knowing(hub),
        )
        answer = json.loads(made.out)
        operator.secret = answer["secret"]
        yield Scene(
            hub=hub,
            api=api,
            publisher=publisher,
            subscribers=subscribers,
            operator=operator,
            subscription=answer["id"],
        )


async def test_a_feed_that_fails_and_works_again(tmp_path: Path) -> None:
    async with subscribed(tmp_path, "feed.*") as scene:
        feed_id, feed = await scene.add_feed()
        feed.instead = FAILS
        await scene.fetch(feed_id, times=3)
        await scene.until_told(("feed.failing", feed_id))
        feed.instead = None
        await scene.fetch(feed_id)
        await scene.until_told(("feed.failing", feed_id), ("feed.recovered", feed_id))

        failing, recovered = (each.data for each in scene.messages)
        assert failing["reason"] == "answered 503 Service Unavailable"
        assert failing["code"] == 503
        assert recovered["since"] == failing["since"]
        assert failing["link"] == f"{scene.hub.url}/api/feeds/{feed_id}"

        async def is_acknowledged() -> bool:
            shown = await scene.api.subscription(scene.subscription)
            return [each["status"] for each in shown["attempts"]] == [200, 200]

        await eventually(is_acknowledged)


async def test_a_feed_that_is_gone(tmp_path: Path) -> None:
    async with subscribed(tmp_path) as scene:
        feed_id, feed = await scene.add_feed()
        feed.instead = ServerAnswer(status=410)
        await scene.fetch(feed_id, times=2)
        await scene.until_told(("feed.gone", feed_id))
        (gone,) = scene.messages
        assert gone.data["reason"] == "it answered 410 Gone twice in a row"


async def test_a_callback_that_fails_works_again_and_ends(tmp_path: Path) -> None:
    async with subscribed(tmp_path) as scene:
        reader = scene.subscribers.add("reader")
        feed_id, feed = await scene.add_feed()
        topic = scene.publisher.url(feed)
        number = await scene.api.subscribe(callback=reader.url, topic=topic)
        reader.answer(ServerAnswer(status=500))
        scene.publisher.publish(feed)
        await scene.fetch(feed_id)

        await eventually(lambda: scene.is_told(1, retrying=number), 30)
        reader.answer(ServerAnswer())
        await eventually(lambda: scene.is_told(2, retrying=number), 30)
        await scene.until_told(
            ("subscription.failing", number), ("subscription.recovered", number)
        )
        reader.answer(ServerAnswer(status=410))
        scene.publisher.publish(feed)
        await scene.fetch(feed_id)
        await eventually(lambda: len(scene.messages) == 3, 30)
        ended = scene.messages[-1]
        assert ended.type == "subscription.ended"
        assert ended.data["reason"] == "the callback answered 410 Gone"


@pytest.mark.parametrize("failpoint", ["", "mid-post:1", "after-2xx:1"])
async def test_a_kill_after_a_feed_began_to_fail_loses_nothing(
    tmp_path: Path, failpoint: str
) -> None:
    """At once, while the message is sent, and when it was taken."""
    async with subscribed(tmp_path) as scene:
        feeds = [await scene.add_feed() for _ in range(5)]
        for feed_id, feed in feeds:
            feed.instead = FAILS
            await scene.fetch(feed_id)
        if failpoint:
            await scene.hub.terminate()
            await scene.hub.start(failpoint=failpoint)
            await scene.hub.wait_ready()
        for feed_id, _ in feeds:
            await scene.fetch(feed_id)
        if failpoint:
            await scene.hub.wait_exit()
        else:
            await scene.hub.kill()
        assert len(scene.messages) <= 1

        await scene.restart()

        await scene.until_told(*(("feed.failing", feed_id) for feed_id, _ in feeds))


async def test_an_operator_that_was_away_is_told_of_all_of_it_over_restarts(
    tmp_path: Path,
) -> None:
    async with subscribed(tmp_path, "feed.*") as scene:
        feed_id, feed = await scene.add_feed()
        scene.operator.answer(ServerAnswer(status=500))
        for answer in (FAILS, None, FAILS):
            feed.instead = answer
            await scene.fetch(feed_id, times=2)
            await scene.hub.kill()
            await scene.restart()

        scene.operator.answer(ServerAnswer())
        await scene.api.retry(scene.subscription)
        await scene.until_told(
            ("feed.failing", feed_id),
            ("feed.recovered", feed_id),
            ("feed.failing", feed_id),
        )


async def test_a_test_delivery_is_shown_as_it_was_taken(tmp_path: Path) -> None:
    async with subscribed(tmp_path, "feed.*,hub.disk") as scene:
        tested = await fanfare(
            "subs", "test", str(scene.subscription), variables=knowing(scene.hub)
        )
        assert tested.code == 0, tested.err
        await scene.until_told(("hub.test", scene.subscription))
