"""Pings by the thousand, at every door: refused or one, and nothing unknown fetched.

A hub of its own process, real sockets, and publishers who count what they are asked.
"""

from __future__ import annotations

import asyncio
import time
import xmlrpc.client
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.admin import ADMIN
from tests.support.http_server import Origin
from tests.support.hub_process import HubAnswer
from tests.support.publisher import Document
from tests.support.waiting import eventually
from tests.support.websub import WebSubScene, websub_scene

pytestmark = pytest.mark.asyncio(loop_scope="module")
AT_ONCE, A_SECOND = 10, 1
"""Fetches for pings of one topic, whoever sends them (`hub.websub.ping_queue`)."""
FLOOD = 1_000


@dataclass(frozen=True)
class Door:
    """Where pings come in; ``path`` takes what ``body`` makes of a URL."""

    name: str
    path: str
    media_type: str

    def body(self, url: str) -> bytes:
        match self.name:
            case "openfeeder":
                return f'{{"action": "upsert", "urls": ["{url}"]}}'.encode()
            case "xml-rpc":
                call = xmlrpc.client.dumps(("A blog", url), "weblogUpdates.ping")
                return call.encode()
        return f"hub.mode=publish&hub.url={url}".encode()


FORM = "application/x-www-form-urlencoded"
DOORS = (
    Door("websub", "/hub", FORM),
    Door("superfeedr", "/", FORM),
    Door("openfeeder", "/openfeeder/update", "application/json"),
    Door("xml-rpc", "/rpc", "text/xml"),
)
every_door = pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)


@asynccontextmanager
async def a_scene(directory: Path, **settings: str) -> AsyncIterator[WebSubScene]:
    async with websub_scene(directory, **settings) as scene:
        scene.api.session.headers.update(ADMIN)
        yield scene


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[WebSubScene]:
    """A hub that counts no requests, so that each ping goes as far as it can."""
    directory = tmp_path_factory.mktemp("hub")
    async with a_scene(directory, FANFARE_RATE_LIMIT_ADDRESS="0") as scene:
        yield scene


async def ping(scene: WebSubScene, door: Door, url: str) -> HubAnswer:
    return await scene.api.ask(
        "POST",
        door.path,
        data=door.body(url),
        headers={"Content-Type": door.media_type, "Accept": "application/json"},
    )


async def flood(
    scene: WebSubScene, door: Door, urls: Sequence[str]
) -> Sequence[HubAnswer]:
    """All of them, as fast as fifty at a time can."""
    turns = asyncio.Semaphore(50)

    async def one(url: str) -> HubAnswer:
        async with turns:
            return await ping(scene, door, url)

    return await asyncio.gather(*map(one, urls))


async def a_known_topic(scene: WebSubScene) -> Document:
    topic = scene.topic()
    await scene.api.add_feed(topic.url)
    return topic


@every_door
async def test_a_thousand_pings_of_a_topic_are_a_few_fetches(
    scene: WebSubScene, door: Door
) -> None:
    topic = await a_known_topic(scene)
    before, began = len(topic.requests), time.monotonic()

    answers = await flood(scene, door, [topic.url] * FLOOD)

    assert {each.status for each in answers} <= {200, 202, 204}
    await eventually(lambda: len(topic.requests) > before)
    fetches = len(topic.requests) - before
    elapsed = time.monotonic() - began
    assert fetches <= AT_ONCE + 1 + A_SECOND * elapsed


@every_door
async def test_nothing_that_is_unknown_is_fetched_however_often_it_is_named(
    scene: WebSubScene, door: Door
) -> None:
    topic = await a_known_topic(scene)
    unknown = f"{topic.url.rpartition('/')[0]}/unknown"
    before = len(topic.requests)
    async with Origin() as canary:
        hosts = [canary.url(f"/{number}") for number in range(FLOOD // 2)]
        elsewhere = [f"{unknown}/{number}" for number in range(FLOOD // 2)]
        answers = await flood(scene, door, [*hosts, *elsewhere])
        assert {each.status for each in answers} <= {200, 202, 204}
        # whatever those pings set off would be under way before this one's fetch is
        await ping(scene, door, topic.url)
        await eventually(lambda: len(topic.requests) > before)
        assert canary.connections == 0


async def test_who_pings_by_the_thousand_is_refused_and_others_are_not(
    tmp_path: Path,
) -> None:
    async with a_scene(tmp_path, FANFARE_RATE_LIMIT_ADDRESS="60") as scene:
        topic = await a_known_topic(scene)
        before, began = len(topic.requests), time.monotonic()
        del scene.api.session.headers["Authorization"]
        for door in DOORS:
            answers = await flood(scene, door, [topic.url] * 100)
            assert 429 in {each.status for each in answers}
        fetches = len(topic.requests) - before
        elapsed = time.monotonic() - began
        assert fetches <= AT_ONCE + 1 + A_SECOND * elapsed

        scene.api.session.headers.update(ADMIN)
        for door in DOORS:
            assert (await ping(scene, door, topic.url)).status in (200, 202, 204)
