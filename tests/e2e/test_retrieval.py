"""A whole hub: what it has stored is read back, searched, replayed and streamed."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.http_server import ServerAnswer
from tests.support.hub_process import HubAnswer
from tests.support.publisher import Document
from tests.support.subscribers import Subscriber
from tests.support.waiting import eventually
from tests.support.websub import WebSubScene, topic_document, websub_scene


@dataclass
class Account:
    scene: WebSubScene
    login: dict[str, str]  # a header
    topic: Document
    callback: Subscriber

    async def ask(self, mode: str, path: str = "/", **given: str) -> HubAnswer:
        parameters = self.parameters(mode, **given)
        return await self.scene.api.ask(
            "GET", path, params=parameters, headers=self.login
        )

    def parameters(self, mode: str, **given: str) -> dict[str, str]:
        values = {
            "hub.mode": mode,
            "hub.topic": self.topic.url,
            "hub.callback": self.callback.url,
            "format": "json",
            **given,
        }
        return {name: value for name, value in values.items() if value}

    async def publish(self, *numbers: int) -> None:
        self.topic.body = topic_document(*numbers)
        ping = {"hub.mode": "publish", "hub.url": self.topic.url}
        assert (await self.scene.post(ping)).status < 300


@pytest.fixture
async def account(tmp_path: Path) -> AsyncIterator[Account]:
    """It has subscribed to a topic with one entry."""
    async with websub_scene(tmp_path) as scene:
        token = await scene.api.create_token("me", "subscribe", "retrieve")
        login = {"Authorization": f"Bearer {token}"}
        account = Account(scene, login, scene.topic(), scene.callback())
        answer = await account.ask("subscribe", **{"hub.secret": "s3cret"})
        assert answer.status == 204
        yield account


def titles(document: Any) -> list[str]:
    return [item["title"] for item in document["items"]]


async def test_right_after_a_subscription_there_is_something_to_retrieve(
    account: Account,
) -> None:
    by_topic = json.loads((await account.ask("retrieve")).text)
    by_callback = json.loads((await account.ask("retrieve", **{"hub.topic": ""})).text)

    assert titles(by_topic) == titles(by_callback) == ["Entry 1"]
    assert by_topic["status"]["feed"] == account.topic.url
    assert by_topic["status"]["code"] == 200
    source = by_callback["items"][0]["source"]
    assert source["title"] == "A topic"
    assert source["status"]["feed"] == account.topic.url


async def test_what_was_fetched_is_found_soon(account: Account) -> None:
    async def finds(query: str, *expected: str) -> bool:
        answer = await account.ask("search", query=query)
        assert answer.status == 200
        return titles(json.loads(answer.text)) == list(expected)

    await eventually(lambda: finds("entry", "Entry 1"))
    await account.publish(2, 1)
    await eventually(lambda: finds("entry", "Entry 2", "Entry 1"))
    assert await finds("entry -2", "Entry 1")


async def test_a_replay_is_one_more_signed_delivery(account: Account) -> None:
    assert (await account.ask("replay")).status == 204

    (delivery,) = account.callback.deliveries
    assert titles(json.loads(delivery.body)) == ["Entry 1"]
    signature = hmac.new(b"s3cret", delivery.body, hashlib.sha1).hexdigest()
    assert delivery.headers["x-hub-signature"] == f"sha1={signature}"

    assert (await account.ask("replay", **{"async": "true"})).status == 204
    await eventually(lambda: len(account.callback.deliveries) == 2)

    account.callback.answer(ServerAnswer(status=500), ServerAnswer())
    refused = await account.ask("replay")
    assert refused.status == 422
    assert "hub.callback" in refused.text


async def test_a_poll_is_answered_when_the_publisher_has_news(
    account: Account,
) -> None:
    last = "tag:publisher.example,2026:1"
    polling = asyncio.create_task(account.ask("retrieve", wait="poll", after=last))

    await account.publish(2, 1)

    assert titles(json.loads((await polling).text)) == ["Entry 2"]


@pytest.mark.parametrize("path", ["/", "/stream"])
async def test_a_stream_goes_on_with_what_the_publisher_has(
    account: Account, path: str
) -> None:
    url = account.scene.hub.url + path
    wish = account.parameters("retrieve", wait="stream")
    session = account.scene.api.session
    async with session.get(url, params=wish, headers=account.login) as answer:
        assert titles(json.loads(await answer.content.readline())) == ["Entry 1"]
        for number in (2, 3):
            await account.publish(*range(number, 0, -1))
            line = await asyncio.wait_for(answer.content.readline(), 60)
            assert titles(json.loads(line)) == [f"Entry {number}"]


async def test_events_are_resumed_where_they_were_broken_off(
    account: Account,
) -> None:
    url, wish = account.scene.hub.url, account.parameters("retrieve")
    session = account.scene.api.session
    headers = {**account.login, "Accept": "text/event-stream"}
    async with session.get(url, params=wish, headers=headers) as answer:
        last, told = await next_event(answer)
        assert titles(told) == ["Entry 1"]
    await account.publish(2, 1)
    await eventually(lambda: bool(account.callback.deliveries))

    headers["Last-Event-ID"] = last
    async with session.get(url, params=wish, headers=headers) as answer:
        _last, told = await next_event(answer)
        assert titles(told) == ["Entry 2"]


async def next_event(answer: aiohttp.ClientResponse) -> tuple[str, Any]:
    """The id and the data of the next notification, whatever other event comes
    before it."""
    id = event = ""
    async with asyncio.timeout(60):
        while True:
            line = (await answer.content.readline()).decode().strip()
            name, _, value = line.partition(": ")
            if name == "event":
                event = value
            elif name == "id":
                id = value
            elif name == "data" and event == "notification":
                return id, json.loads(value)
