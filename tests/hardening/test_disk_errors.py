"""A disk that is full, read-only or broken beneath a running hub.

The hub says so to whoever asks for something to be stored, takes back nothing that it
promised, and goes on by itself when the disk is well again.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from hub.main import run
from hub.settings import Settings
from tests.support.admin import ADMIN, TOKEN
from tests.support.failing_disk import (
    BROKEN,
    FULL,
    READ_ONLY,
    FailingDisk,
    failing_disk,
)
from tests.support.http_server import ServerAnswer
from tests.support.hub_process import HubApi
from tests.support.publisher import PublishedFeed, Publisher
from tests.support.subscribers import Subscriber, Subscribers
from tests.support.waiting import eventually

LOOPBACK = (ip_network("127.0.0.0/8"),)


@dataclass(slots=True)
class Hub:
    """A whole hub in this process, on a disk that can fail, with a subscriber."""

    disk: FailingDisk
    api: HubApi
    publisher: Publisher
    subscribers: Subscribers
    feed: PublishedFeed = field(init=False)
    subscriber: Subscriber = field(init=False)

    async def ask(self, method: str, path: str, **sent: Any) -> int:
        return (await self.api.ask(method, path, headers=ADMIN, **sent)).status

    async def set_up(self) -> None:
        self.feed = self.publisher.add_feed()
        topic = self.publisher.url(self.feed)
        await self.api.add_feed(topic)
        add = self.subscribers.add
        self.subscriber = add("a", feed=1, topic=topic, secret="s3cret")
        await self.api.subscribe(
            callback=self.subscriber.url,
            topic=topic,
            secret=self.subscriber.secret,
        )

    async def listed(self, what: str, member: str) -> list[str]:
        found = await self.api.request("GET", f"/api/{what}")
        return [each[member] for each in found[what]]

    async def is_ready(self) -> bool:
        return await self.ask("GET", "/readyz") == 200

    async def fetch(self) -> bool:
        return await self.ask("POST", "/api/feeds/1/fetch") == 200


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    with failing_disk() as disk:
        async with (
            Publisher() as publisher,
            Subscribers() as subscribers,
            serving(tmp_path / "hub.db") as api,
        ):
            hub = Hub(disk, api, publisher, subscribers)
            await hub.set_up()
            yield hub
            disk.error = 0


@asynccontextmanager
async def serving(database: Path) -> AsyncIterator[HubApi]:
    """The hub's own way from its start to SIGTERM; a client of its operator's."""
    said: asyncio.Queue[str] = asyncio.Queue()
    settings = Settings(
        database=f"sqlite:{database}",
        port=0,
        admin_token=TOKEN,
        allow_networks=LOOPBACK,
        contact="me@example.org",
    )
    running = asyncio.create_task(run(settings, announce=said.put_nowait))
    async with asyncio.timeout(60):
        [url] = re.findall(r"http://localhost:\d+", await said.get())
    async with HubApi(url) as api:
        yield api
    os.kill(os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(60):
        await running


def writes_of_all_kinds(hub: Hub) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    topic, callback = hub.subscriber.topic, f"{hub.subscriber.url}-more"
    wish = {"hub.mode": "subscribe", "hub.topic": topic, "hub.callback": callback}
    ping = {"hub.mode": "publish", "hub.url": topic}
    yield "POST", "/api/feeds", {"json": {"url": f"{topic}0"}}
    yield "DELETE", "/api/feeds/1", {}
    yield "POST", "/api/feeds/1/fetch", {}
    yield "POST", "/api/feeds/1/fetch", {}  # and not only the first one
    subscribing = {"callback": callback, "topic": topic}
    yield "POST", "/api/subscriptions", {"json": subscribing}
    yield "DELETE", "/api/subscriptions/1", {}
    yield "POST", "/hub", {"data": wish}
    yield "POST", "/hub", {"data": ping}
    yield "POST", "/", {"data": wish}
    yield "POST", "/openfeeder/update", {"json": {"urls": [topic]}}


@pytest.mark.parametrize("error", [FULL, READ_ONLY, BROKEN])
async def test_nothing_is_acknowledged_that_is_not_stored_and_all_goes_on_afterwards(
    hub: Hub, error: int
) -> None:
    def fail_while_it_answers() -> Iterator[ServerAnswer]:
        hub.disk.error = error
        yield ServerAnswer()

    hub.subscriber.answers = fail_while_it_answers()
    hub.publisher.publish(hub.feed)
    assert await hub.fetch()
    await eventually(lambda: hub.subscriber.numbers == [2])
    hub.publisher.publish(hub.feed)

    assert not await hub.is_ready()
    statuses = {
        f"{method} {path}": await hub.ask(method, path, **sent)
        for method, path, sent in writes_of_all_kinds(hub)
    }
    assert set(statuses.values()) == {503}, statuses
    assert await hub.ask("GET", "/api/feeds/1") == 200, "what is stored can be read"
    assert not await hub.is_ready()
    assert hub.disk.refused

    hub.disk.error = 0
    await eventually(hub.is_ready)
    await eventually(lambda: hub.subscriber.numbers == [2, 3])
    assert await hub.listed("feeds", "url") == [hub.subscriber.topic]
    assert await hub.listed("subscriptions", "callback") == [hub.subscriber.url]
    hub.publisher.publish(hub.feed)
    assert await hub.fetch()
    await eventually(lambda: hub.subscriber.numbers == [2, 3, 4])
