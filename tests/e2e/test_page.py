"""The page at ``/``, with a hub that has something to show.

Where a Chromium is installed it runs the page; where none is, the case says so by its
name, and only what the page's program relies on is tested: its one request, and the
members of the events that it reads.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import aiohttp
import pytest
from lxml import html

from tests.support.hub_api import HubApi
from tests.support.hub_process import HubProcess
from tests.support.publisher import PublishedFeed, Publisher

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSERS = [path for path in map(shutil.which, NAMES) if path is not None]
HOSTILE = "&lt;img src=x onerror=document.title=1&gt; &amp;amp; more"


@dataclass(frozen=True, slots=True)
class Scene:
    hub: HubProcess
    api: HubApi
    publisher: Publisher
    feed: PublishedFeed
    feed_id: int

    async def publish(self) -> None:
        """A new entry with a title that is dangerous as markup."""
        self.feed.titles[self.feed.count + 1] = HOSTILE
        self.publisher.publish(self.feed)
        await self.api.fetch(self.feed_id)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    hub = HubProcess(directory=tmp_path)
    async with Publisher() as publisher, hub, HubApi(hub) as api:
        feed = publisher.add_feed()
        feed_id = await api.add_feed(publisher.url(feed))
        yield Scene(hub, api, publisher, feed, feed_id)


async def listen(
    scene: Scene, topics: list[str], opened: asyncio.Event
) -> dict[str, object]:
    """The first notification of the page's own request for events."""
    query = urlencode([("topic", topic) for topic in topics])
    headers = {"Accept": "text/event-stream"}
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{scene.hub.url}/stream?{query}", headers=headers) as answer,
    ):
        assert answer.status == 200
        name = ""
        async for raw in answer.content:
            line = raw.decode().rstrip("\n")
            if line.startswith(":"):
                opened.set()
            elif line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: ") and name == "notification":
                message: dict[str, object] = json.loads(line.removeprefix("data: "))
                return message
    raise AssertionError("the event stream ended")


async def the_page_of(scene: Scene) -> html.HtmlElement:
    async with (
        aiohttp.ClientSession() as session,
        session.get(scene.hub.url) as answer,
    ):
        return html.fromstring(await answer.text())


async def test_the_pages_request_brings_events_with_what_its_program_reads(
    scene: Scene,
) -> None:
    document = await the_page_of(scene)
    topics = document.xpath("//li/@data-live")
    assert topics == [scene.publisher.url(scene.feed)]
    opened = asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        listening = group.create_task(listen(scene, topics, opened))
        await opened.wait()
        await scene.publish()
    body = listening.result()["body"]
    assert isinstance(body, dict)
    [item] = body["items"]
    assert body["title"] == "Feed 1"
    assert item["permalinkUrl"] == "https://publisher.example/1/2"
    assert item["title"] == "<img src=x onerror=document.title=1> &amp; more"


@pytest.mark.parametrize("browser", BROWSERS or ["no browser is installed"])
async def test_an_entry_appears_in_a_browser(scene: Scene, browser: str) -> None:
    if browser not in BROWSERS:
        assert shutil.which("chromium") is None
        return
    process = await asyncio.create_subprocess_exec(
        *(browser, "--headless", "--no-sandbox", "--disable-gpu"),
        *(f"--user-data-dir={scene.hub.directory / 'browser'}", "--timeout=8000"),
        *("--dump-dom", scene.hub.url),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        await until_connected(scene)
        await scene.publish()
        shown, said = await process.communicate()
    document = html.fromstring(shown.decode())
    [title] = document.xpath("//ol[@id='entries']/li/a")
    assert title.text_content().startswith("<img src=x")
    assert not document.xpath("//img")
    assert document.xpath("//title/text()") == ["Fanfare"]
    assert b"Content Security Policy" not in said


async def until_connected(scene: Scene) -> None:
    async with aiohttp.ClientSession() as session:
        for _ in range(600):
            async with session.get(f"{scene.hub.url}/metrics") as answer:
                found = re.search(r'transport="sse"} (\d+)', await answer.text())
            if found is not None and int(found[1]) > 0:
                return
            await asyncio.sleep(0.05)
    raise AssertionError("the page did not connect")
