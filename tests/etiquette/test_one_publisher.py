"""A publisher is asked once a second at most, however much the hub wants of it at once.

The whole hub, as it is composed to serve, in played time: everything in it that asks
publishers asks the same host.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import orjson
import pytest

from hub.composition import BuiltHub, build_hub
from hub.http import Answer, Purpose, Request
from hub.http.response_parser import AnswerHeaders
from hub.limits.host_limiter import INTERVAL
from hub.settings import Settings
from tests.simulation.asgi_requests import AsgiRequest, AsgiResponse, send_request
from tests.simulation.disk import Disk
from tests.simulation.loop import VirtualLoop
from tests.simulation.process import PlayedClock, PlayedTime
from tests.support.fake_fetcher import InlineParser
from tests.support.openfeeder import WELL_KNOWN, FeederSite

PUBLISHER = "https://publisher.example"
HUB = "https://hub.example/0"
PAGES = 60
"""Of the site: a visit to it asks for each of them."""
ANSWER_SECONDS = 0.2
FEED = """<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>
<title>A feed</title><atom:link rel="hub" href="{publisher}/hub"/>
<item><guid>{path}</guid><title>An entry</title></item></channel></rss>"""
PAGE = (
    '<html><head><link rel="alternate" type="application/rss+xml" href="/of-page.xml">'
)
LIST = f'<opml version="2.0"><body><outline xmlUrl="{PUBLISHER}/1.xml"/></body></opml>'


@dataclass
class Publisher:
    """All of one host: a site of many pages, feeds, a page, a list, and its own hub.

    It is the only host there is but for callbacks, which agree to everything.
    """

    site: FeederSite = field(default_factory=lambda: FeederSite(PUBLISHER))
    asked: list[tuple[str, float]] = field(default_factory=list)  # path and time

    def is_exempt(self, host: str, purpose: Purpose) -> bool:
        return False

    async def send(self, request: Request) -> Answer:
        parts = urlsplit(request.url)
        query = dict(parse_qsl(parts.query))
        if request.url.startswith(PUBLISHER):
            now = asyncio.get_running_loop().time()
            self.asked.append((parts.path, now))
        await asyncio.sleep(ANSWER_SECONDS)
        status, headers, body = self._answer(parts.path, query)
        fields = [
            (name.lower().encode(), value.encode()) for name, value in headers.items()
        ]
        return Answer(
            url=request.url,
            status=status,
            headers=AnswerHeaders(fields),
            body=body,
            complete=True,
            milliseconds=200,
        )

    def _answer(
        self, path: str, query: dict[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        if path in (WELL_KNOWN, "/openfeeder"):
            return self.site.answer(path, query, {})
        if path == "/moved.xml":
            return 302, {"Location": f"{PUBLISHER}/moved-to.xml"}, b""
        if path.endswith(".xml"):
            headers = {"Link": f'<{PUBLISHER}/may-they>; rel="validate"'}
            return 200, headers, FEED.format(path=path, publisher=PUBLISHER).encode()
        bodies = {"/page": PAGE, "/list.opml": LIST, "/robots.txt": ""}
        if path in bodies:
            return 200, {}, bodies[path].encode()
        if path in ("/may-they", "/hub"):
            return 202, {}, b""
        if path == "/callback":
            return 200, {}, query["hub.challenge"].encode()
        return 404, {}, b""

    @property
    def paths(self) -> set[str]:
        return {path for path, _ in self.asked}

    def first(self, path: str) -> float:
        return next(at for asked, at in self.asked if asked == path)


@dataclass
class Scene:
    publisher: Publisher
    hub: BuiltHub

    async def call(self, method: str, path: str, body: object = None) -> Any:
        headers = {
            "Authorization": "Bearer token",
            "Content-Type": "application/json",
        }
        response = await self._send(method, path, headers, orjson.dumps(body))
        assert response.status < 300, response
        return orjson.loads(response.body) if response.body else None

    async def subscribe(self, topic: str) -> None:
        """As a stranger, at the open hub."""
        form = {
            "hub.mode": "subscribe",
            "hub.topic": topic,
            "hub.callback": "https://subscriber.example/callback",
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        response = await self._send("POST", "/hub", headers, urlencode(form).encode())
        assert response.status == 202, response

    async def read_site(self) -> None:
        """Until the hub is in the middle of it."""
        posts = self.publisher.site
        for number in range(PAGES):
            posts.add(f"/{number}")
        await self.call("POST", "/api/feeds", {"url": f"{PUBLISHER}{WELL_KNOWN}"})
        await asyncio.sleep(10)
        assert "/openfeeder" in self.publisher.paths

    async def _send(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> AsgiResponse:
        request = AsgiRequest(
            method=method, url=f"{HUB}{path}", headers=headers, body=body
        )
        return await send_request(self.hub.server.config.app, request)  # type: ignore[arg-type]


@asynccontextmanager
async def serving(directory: Path) -> AsyncIterator[Scene]:
    publisher, time = Publisher(), PlayedTime()
    async with AsyncExitStack() as stack:
        disk = Disk(directory, Random(0))
        stack.callback(disk.close)
        storage = await disk.open()
        stack.push_async_callback(storage.close)
        settings = Settings(
            database=f"sqlite:{disk.database}",
            public_url=HUB,
            open_hub="any",
            robots="on",
            scp="off",
            upstream="on",
        )
        hub = await build_hub(
            settings,
            storage,
            "token",
            HUB,
            stack,
            clock=PlayedClock(time),
            random=Random(0),
            jitter=lambda: 0.0,
            network=publisher,
            parser=InlineParser(),
            lookup=_look_up,
        )
        running = [
            asyncio.create_task(run())
            for name, run in hub.background.items()
            if name != "housekeeping"  # by a scheduler, whose clock is the real one
        ]
        try:
            yield Scene(publisher, hub)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


async def _look_up(host: str) -> list[str]:
    return ["93.184.216.34"]


Play = Callable[[Callable[[Scene], Coroutine[Any, Any, None]]], Publisher]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Runs a story in played time; what the publisher has seen."""

    async def tell(story: Callable[[Scene], Coroutine[Any, Any, None]]) -> Publisher:
        async with serving(tmp_path) as scene:
            await story(scene)
            return scene.publisher

    def run(story: Callable[[Scene], Coroutine[Any, Any, None]]) -> Publisher:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            return runner.run(tell(story))

    return run


def test_whatever_asks_a_publisher_no_two_requests_are_closer_than_the_pace(
    play: Play,
) -> None:
    async def story(scene: Scene) -> None:
        await scene.read_site()
        async with asyncio.TaskGroup() as tasks:
            for work in (
                scene.call("POST", "/api/feeds", {"url": f"{PUBLISHER}/1.xml"}),
                scene.call("POST", "/api/feeds", {"url": f"{PUBLISHER}/moved.xml"}),
                scene.call("POST", "/api/discover", {"url": f"{PUBLISHER}/page"}),
                scene.call("POST", "/api/lists", {"urls": [f"{PUBLISHER}/list.opml"]}),
                scene.subscribe(f"{PUBLISHER}/2.xml"),
                scene.subscribe(f"{PUBLISHER}/3.xml"),
            ):
                tasks.create_task(work)
        await asyncio.sleep(180)

    publisher = play(story)

    pages = {f"/{name}.xml" for name in ("1", "2", "3", "moved", "moved-to")}
    asked = {"/robots.txt", "/page", "/list.opml", "/may-they", "/hub", "/openfeeder"}
    assert publisher.paths >= pages | asked
    follows = {"/moved-to.xml"}  # a redirect, at once
    close = [
        (earlier, later)
        for earlier, later in pairwise(publisher.asked)
        if later[1] - earlier[1] < INTERVAL - 1e-6 and later[0] not in follows
    ]
    assert close == []


def test_what_somebody_waits_for_is_not_kept_waiting_by_a_site_that_is_read(
    play: Play,
) -> None:
    took: dict[str, float] = {}

    async def story(scene: Scene) -> None:
        feed = await scene.call("POST", "/api/feeds", {"url": f"{PUBLISHER}/1.xml"})
        await scene.read_site()
        loop, began = asyncio.get_running_loop(), len(scene.publisher.asked)
        at = loop.time()
        await scene.call("POST", f"/api/feeds/{feed['id']}/fetch")
        took["a fetch by hand"] = loop.time() - at
        await scene.subscribe(f"{PUBLISHER}/2.xml")
        took["a topic"] = -loop.time()
        await asyncio.sleep(20)
        took["a topic"] += scene.publisher.first("/2.xml")
        meanwhile = [path for path, _ in scene.publisher.asked[began:]]
        assert meanwhile.count("/openfeeder") > 10  # it is read all the while

    play(story)

    assert took["a fetch by hand"] < 2.5
    assert took["a topic"] < 2.5
