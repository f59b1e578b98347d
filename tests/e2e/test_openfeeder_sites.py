"""OpenFeeder sites on real sockets: what subscribers of each kind get, and do not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lxml.etree import fromstring
from websockets.asyncio.client import connect

from hub.runtime.clock import SystemClock
from tests.support.command import fanfare, knowing
from tests.support.hub_process import LOOPBACK, HubApi, HubProcess
from tests.support.openfeeder import FeederSite, Ways
from tests.support.publisher import Publisher
from tests.support.subscribers import Subscriber, Subscribers
from tests.support.waiting import eventually

ATOM = {"a": "http://www.w3.org/2005/Atom"}
EAGER = {
    **LOOPBACK,
    "FANFARE_SITE_WALK_SECONDS": "1",
    "FANFARE_SITE_REREAD_SECONDS": "1",
}
"""Everything is read again with each fetch that needs it."""
WAYS = (
    Ways(),
    Ways(has_since=False),
    Ways(since_is_published=True, tracks_deletions=False),
    Ways(marks_all=True),
    Ways(keeps_tombstones=True, late_seconds=3),
    Ways(shuffles=True, most_limit=100),
    Ways(is_absolute=True),
    Ways(repeats_page=True, total_pages=42, has_since=False, page_size=1_000),
    Ways(total_pages=0, page_size=7, has_since=False),
    Ways(is_sparse=True, has_since=False, has_etags=False),
    Ways(discovery="/wp-json/openfeeder/v1/discovery", page_is_absolute=True),
    Ways(site_url="http://localhost:3003"),
)


@dataclass
class Listener:
    """Live: titles of what came, with ids of what was deleted."""

    items: list[str] = field(default_factory=list)

    async def listen(self, hub: HubProcess, topic: str) -> None:
        url = f"{hub.url.replace('http', 'ws')}/stream?topic={quote(topic, safe='')}"
        async with connect(f"{url}&updates=all") as client:
            async for text in client:
                message: dict[str, Any] = json.loads(text)
                if message["type"] == "subscribed":
                    self.is_ready.set()
                for item in (message.get("body") or {}).get("items", []):
                    is_gone = item.get("verb") == "delete"
                    self.items.append(item["id"] if is_gone else item["title"])

    def __post_init__(self) -> None:
        self.is_ready = asyncio.Event()


@dataclass
class Followed:
    """A site that is followed by a webhook and by a live connection."""

    site: FeederSite
    hub: HubProcess
    api: HubApi
    told: Subscriber
    live: Listener
    feed_id: int

    async def fetch(self) -> None:
        await self.api.fetch(self.feed_id)
        shown = await self.api.feed(self.feed_id)
        assert shown["error"] == "", (self.site.ways, shown["error"])

    async def until_all_is_read_again(self) -> None:
        """By the next fetch; between two readings there are `EAGER` seconds."""
        facts = (await self.api.feed(self.feed_id))["site"]
        read_at = max(
            datetime.fromisoformat(each)
            for each in (facts["walked_at"], facts["reread_at"])
            if each
        )
        due = read_at + timedelta(seconds=1)
        await asyncio.sleep((due - SystemClock().now()).total_seconds())

    async def listed(self) -> set[str]:
        path = f"/topics/{self.feed_id}.normalized.json?limit=100"
        page = await self.api.request("GET", path)
        document = json.loads(page) if isinstance(page, bytes) else page
        return {item["title"] for item in document["items"]}


@asynccontextmanager
async def followed(
    hub: HubProcess, api: HubApi, ways: Ways, pages: int = 12
) -> AsyncIterator[Followed]:
    site, live = FeederSite(ways=ways), Listener()
    async with Publisher() as publisher, Subscribers() as subscribers:
        site.appear(publisher)
        told = subscribers.add()
        for number in range(pages):
            site.add(f"/p{number:02}")
        feed_id = await api.add_feed(site.front)
        await api.subscribe(
            callback=told.url, topic=site.front, format="json", updates="all"
        )
        listening = asyncio.create_task(live.listen(hub, site.front))
        await live.is_ready.wait()
        yield Followed(site, hub, api, told, live, feed_id)
        listening.cancel()


async def test_subscribers_of_each_kind_get_each_change_once_whatever_the_site_does(
    tmp_path: Path,
) -> None:
    async with (
        HubProcess(directory=tmp_path, settings=EAGER) as hub,
        HubApi(hub.url) as api,
        AsyncExitStack() as stack,
    ):
        scenes = [
            await stack.enter_async_context(followed(hub, api, ways)) for ways in WAYS
        ]
        for act in (add, edit, remove, add_another):  # while one rests others go on
            for scene in scenes:
                await act(scene)
        for scene in scenes:
            await check(scene)


async def add(scene: Followed) -> None:
    site = scene.site
    titles = {f"On {path}" for path in site.posts}
    assert await scene.listed() == titles
    await scene.fetch()
    site.add("/new")
    await scene.fetch()


async def edit(scene: Followed) -> None:
    scene.site.edit("/p03", "Quite another text.")
    await scene.until_all_is_read_again()
    await scene.fetch()


async def remove(scene: Followed) -> None:
    scene.site.remove("/p04")
    await scene.until_all_is_read_again()
    await scene.fetch()


async def add_another(scene: Followed) -> None:
    scene.site.add("/last")
    await scene.fetch()


async def check(scene: Followed) -> None:
    site = scene.site
    gone = f"{site.ways.site_url or site.base}/p04"
    expected = ["On /new", "On /p03", gone, "On /last"]
    await eventually(lambda: len(scene.told.titles) >= 4 and len(scene.live.items) >= 4)
    assert scene.told.titles == expected, site.ways
    assert scene.live.items == expected, site.ways
    assert await scene.listed() == {f"On {path}" for path in site.posts}


async def test_a_hub_that_is_killed_while_it_reads_goes_on_and_repeats_nothing(
    tmp_path: Path,
) -> None:
    site, hub = FeederSite(), HubProcess(directory=tmp_path)
    async with hub, Publisher() as publisher, Subscribers() as subscribers:
        site.appear(publisher)
        told = subscribers.add()
        for number in range(180):
            site.add(f"/p{number:03}")
        async with HubApi(hub.url) as api:
            body = {"url": site.front}
            added = await api.request("POST", "/api/feeds?wait=0", **body)
            feed_id = added["id"]
            for requests in (30, 60, 90):
                reading = asyncio.create_task(api.fetch(feed_id))
                await eventually(lambda most=requests: len(site.asked) > most)
                await hub.kill()
                await asyncio.gather(reading, return_exceptions=True)
                await hub.start()
                await hub.wait_ready()

        async with HubApi(hub.url) as api:
            await api.subscribe(callback=told.url, topic=site.front, format="json")
            for _ in range(9):
                await api.fetch(feed_id)
            report = await api.feed(feed_id)
            assert (report["site"]["is_read"], report["entries"]) == (True, 180)
            site.add("/new")
            await api.fetch(feed_id)
            await eventually(lambda: bool(told.items))
        assert told.items == [("new", "On /new")]


async def test_a_site_s_address_is_enough_and_its_key_is_sent(tmp_path: Path) -> None:
    site = FeederSite(ways=Ways(token="secret"))
    async with HubProcess(directory=tmp_path) as hub, Publisher() as publisher:
        site.appear(publisher)
        publisher.put("/", "<!doctype html><title>Hello</title>", "text/html")
        site.add("/a")
        address, variables = publisher.url(), knowing(hub)

        found = await fanfare("feeds", "discover", address, variables=variables)
        header = ("--header", "Authorization: Bearer secret")
        added = await fanfare("feeds", "add", address, *header, variables=variables)
        shown = await fanfare("feeds", "show", "1", variables=variables)

        assert site.front in found.out
        assert found.code == 0, found.err
        assert added.code == 0, added.err
        assert f"added  {site.front}" in added.out
        assert "openfeeder, 1 page known" in shown.out


async def test_who_wants_a_site_as_it_is_gets_a_document_that_names_this_hub(
    tmp_path: Path,
) -> None:
    site = FeederSite()
    async with (
        HubProcess(directory=tmp_path, settings=EAGER) as hub,
        HubApi(hub.url) as api,
        Publisher() as publisher,
        Subscribers() as subscribers,
    ):
        site.appear(publisher)
        told = subscribers.add()
        site.add("/first")
        feed_id = await api.add_feed(site.front)
        await api.subscribe(callback=told.url, topic=site.front, format="as-is")
        site.add("/second")
        await api.fetch(feed_id)
        await eventually(lambda: bool(told.bodies))

    document = fromstring(told.bodies[0])
    hubs = document.xpath("/a:feed/a:link[@rel='hub']/@href", namespaces=ATOM)
    assert hubs == [f"{hub.url}/hub"]
    titles = document.xpath("//a:entry/a:title/text()", namespaces=ATOM)
    assert titles == ["On /second", "On /first"]
