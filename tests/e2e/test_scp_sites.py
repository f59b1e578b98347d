"""SCP sites from registration on, on real sockets: subscribers get what has changed."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.certificates import server_context
from tests.support.hub_process import HubApi, HubProcess
from tests.support.publisher import Publisher
from tests.support.scp_site import SITEMAP, ScpSite
from tests.support.subscribers import Subscriber, Subscribers
from tests.support.waiting import eventually

NEWS = """<?xml version="1.0"?><rss version="2.0"><channel><title>News</title>
<link>https://site.example/</link><description>d</description>%s</channel></rss>"""
ITEM = "<item><title>%s</title><link>https://site.example/%s</link></item>"


class Scene(NamedTuple):
    site: Publisher
    scp: ScpSite
    hub: HubProcess
    api: HubApi
    told: Subscriber

    async def subscribe(self) -> int:
        feed_id = await self.api.add_feed(self.scp.url)
        await self.api.subscribe(
            callback=self.told.url, topic=self.scp.url, format="json", updates="all"
        )
        return feed_id

    async def until_told(self, *items: tuple[str, str]) -> None:
        await eventually(lambda: len(self.told.items) >= len(items))
        assert self.told.items == list(items)

    async def titles(self, feed_id: int) -> list[str]:
        """Of all entries that the hub has, as anybody may read them."""
        page = await self.api.request("GET", f"/topics/{feed_id}.normalized.json")
        return sorted(each["title"] for each in page["items"])


@asynccontextmanager
async def a_scene(directory: Path) -> AsyncIterator[Scene]:
    async with (
        Publisher() as site,
        Subscribers() as subscribers,
        HubProcess(directory=directory) as hub,
        HubApi(hub.url) as api,
    ):
        yield Scene(site, ScpSite(site), hub, api, subscribers.add())


def padded(scp: ScpSite) -> None:
    """So many pages that a delta is smaller than a snapshot, and one is no half."""
    for number in range(40):
        scp.put(f"old/{number}", f"Old {number}")


async def test_what_is_added_edited_and_removed_reaches_the_subscriber(
    tmp_path: Path,
) -> None:
    async with a_scene(tmp_path) as scene:
        padded(scene.scp)
        scene.scp.put("a", "A")
        older = scene.scp.put("b", "B")
        first = scene.scp.snapshot()
        feed_id = await scene.subscribe()

        new = scene.scp.put("c", "C")
        edited = scene.scp.put("a", "A, edited")
        scene.scp.delta(new, edited, older | {"title": "not newer"})
        await scene.api.fetch(feed_id)
        await scene.until_told(("new", "A, edited"), ("new", "C"))

        scene.scp.remove("b")
        scene.scp.forget()
        scene.scp.snapshot()
        await scene.api.fetch(feed_id)
        await scene.until_told(
            ("new", "A, edited"), ("new", "C"), ("deleted", "https://site.example/b")
        )
        shown = await scene.api.feed(feed_id)
        assert (shown["format"], shown["error"]) == ("scp", "")
        assert scene.site.asked.count(first) == 1


async def test_missed_deltas_are_read_in_their_order_or_replaced_by_a_snapshot(
    tmp_path: Path,
) -> None:
    async with a_scene(tmp_path) as scene:
        padded(scene.scp)
        scene.scp.snapshot()
        feed_id = await scene.subscribe()

        scene.scp.delta(scene.scp.put("a", "A1"))
        scene.scp.delta(scene.scp.put("a", "A2"), scene.scp.put("b", "B"))
        await scene.api.fetch(feed_id)
        await eventually(lambda: len(scene.told.items) == 3)
        first, *others = [each[1] for each in scene.told.items]
        assert first in {"A1", "A2"}  # as it is when it is sent
        assert others == ["A2", "B"]

        # What lies between is gone; the newer snapshot has it all the same.
        scene.scp.put("c", "C")
        scene.scp.forget()
        scene.scp.snapshot()
        scene.scp.delta(scene.scp.put("d", "D"))
        await scene.api.fetch(feed_id)
        await eventually(lambda: len(scene.told.items) == 5)
        assert [each[1] for each in scene.told.items[3:]] == ["C", "D"]


async def test_a_page_in_several_sections_is_one_entry(tmp_path: Path) -> None:
    async with a_scene(tmp_path) as scene:
        for section in ("blog", "docs"):
            scene.scp.put("both", "Both", section=section)
            scene.scp.put(section, section.title(), section=section)
            scene.scp.snapshot(section)
        feed_id = await scene.subscribe()
        assert await scene.titles(feed_id) == ["Blog", "Both", "Docs"]


def _spoiled(scp: ScpSite, way: str) -> str:
    new = scp.put("spoiled", "Spoiled")
    if way == "checksum":
        scp.delta(new, checksum="sha256:" + "0" * 64)
    elif way == "bomb":
        scp.delta(new, tail=b" " * 20_000_000)
    elif way == "broken line":
        scp.delta(body=gzip.compress(b"{broken"))
    elif way == "version":
        scp.delta(new, version="1.0")
    elif way == "gone":
        del scp.site.documents[scp.delta(new)]
    return {
        "checksum": "/collection/checksum: the file has another checksum",
        "bomb": "the ratio of unpacked to sent bytes exceeds the limit of 100",
        "broken line": "line 1: ",
        "version": "version 1.0 of SCP is not supported",
        "gone": "answered 404 Not Found",
    }[way]


@pytest.mark.parametrize("way", ["checksum", "bomb", "broken line", "version", "gone"])
async def test_where_collections_cannot_be_used_the_feed_is_read_until_they_can(
    tmp_path: Path, way: str
) -> None:
    async with a_scene(tmp_path) as scene:
        padded(scene.scp)
        scene.scp.snapshot()
        feed_id = await scene.subscribe()
        link = '<html><head><link rel="alternate" type="application/rss+xml" href="/n">'
        scene.site.put("/", link + "</head></html>", type="text/html")
        items = ITEM % ("Known", "old/1") + ITEM % ("From the feed", "fed")
        scene.site.put("/n", NEWS % items, type="application/rss+xml")

        complaint = _spoiled(scene.scp, way)
        await scene.api.fetch(feed_id)
        await scene.until_told(("new", "From the feed"))
        shown = await scene.api.feed(feed_id)
        assert any(complaint in each for each in shown["problems"])
        assert any("the site's feed is read instead" in p for p in shown["problems"])

        scene.scp.forget()
        scene.scp.snapshot()
        await scene.api.fetch(feed_id)
        await scene.until_told(
            ("new", "From the feed"),
            ("new", "Spoiled"),
            ("deleted", "https://site.example/fed"),  # the snapshot has no such page
        )
        assert (await scene.api.feed(feed_id))["problems"] == []


async def test_without_a_feed_the_status_says_what_is_wrong(tmp_path: Path) -> None:
    async with a_scene(tmp_path) as scene:
        padded(scene.scp)
        scene.scp.snapshot()
        feed_id = await scene.subscribe()
        complaint = _spoiled(scene.scp, "checksum")
        await scene.api.fetch(feed_id)
        shown = await scene.api.feed(feed_id)
        assert complaint in shown["error"]
        assert "no feed was found" in shown["error"]


async def test_a_snapshot_that_lacks_most_is_believed_when_the_next_says_so_again(
    tmp_path: Path,
) -> None:
    async with a_scene(tmp_path) as scene:
        padded(scene.scp)
        scene.scp.snapshot()
        feed_id = await scene.subscribe()
        for number in range(1, 40):
            scene.scp.remove(f"old/{number}")
        for told in (0, 39):
            scene.scp.forget()
            scene.scp.snapshot()
            await scene.api.fetch(feed_id)
            await eventually(lambda told=told: len(scene.told.items) == told)  # type: ignore[misc]
        assert await scene.titles(feed_id) == ["Old 0"]


async def test_a_snapshot_with_other_pages_than_it_says_deletes_nothing(
    tmp_path: Path,
) -> None:
    async with a_scene(tmp_path) as scene:
        padded(scene.scp)
        scene.scp.snapshot()
        feed_id = await scene.subscribe()
        scene.scp.remove("old/1")
        scene.scp.put("new", "New")
        scene.scp.forget()
        scene.scp.snapshot(named_pages=39)
        await scene.api.fetch(feed_id)
        await scene.until_told(("new", "New"))
        shown = await scene.api.feed(feed_id)
        assert any("has 40 pages, not 39" in each for each in shown["problems"])


async def test_what_has_expired_is_not_fetched(tmp_path: Path) -> None:
    async with a_scene(tmp_path) as scene:
        padded(scene.scp)
        scene.scp.snapshot()
        feed_id = await scene.subscribe()
        new = scene.scp.put("a", "A")
        expired = scene.scp.delta(new, expires=scene.scp.at - timedelta(hours=1))
        await scene.api.fetch(feed_id)
        assert expired not in scene.site.asked
        shown = await scene.api.feed(feed_id)
        assert "section all: what is needed next has expired" in shown["problems"]


async def test_a_site_that_is_the_same_is_asked_for_its_sitemap_only(
    tmp_path: Path,
) -> None:
    async with a_scene(tmp_path) as scene:
        padded(scene.scp)
        scene.scp.snapshot()
        feed_id = await scene.subscribe()
        scene.site.requests.clear()
        await scene.api.fetch(feed_id)
        await scene.api.fetch(feed_id)
        assert scene.site.asked == [SITEMAP, SITEMAP]


@pytest.mark.parametrize(
    "place", ["before-commit:1", "after-commit:1", "before-commit:4", "after-commit:5"]
)
async def test_a_hub_that_dies_in_the_first_snapshot_goes_on_and_tells_nobody_of_it(
    tmp_path: Path, place: str
) -> None:
    async with a_scene(tmp_path) as scene:
        for number in range(1_000):
            scene.scp.put(f"old/{number}", f"Old {number}")
        first = scene.scp.snapshot()
        await scene.hub.kill()
        await scene.hub.start(failpoint=place)
        await scene.hub.wait_ready()
        url = scene.scp.url
        added = await scene.api.request("POST", "/api/feeds?wait=0", url=url)
        await scene.hub.wait_exit()

        await scene.hub.start()
        await scene.hub.wait_ready()
        await scene.api.fetch(added["id"])
        shown = await scene.api.feed(added["id"])
        assert (shown["site"]["is_read"], shown["entries"]) == (True, 1_000)
        assert scene.site.asked.count(first) == 2
        await scene.api.subscribe(
            callback=scene.told.url, topic=url, format="json", updates="all"
        )
        scene.scp.delta(scene.scp.put("new", "New"))
        await scene.api.fetch(added["id"])
        await scene.until_told(("new", "New"))


async def test_a_server_whose_certificate_nobody_signed_is_not_believed(
    tmp_path: Path,
) -> None:
    async with (
        a_scene(tmp_path) as scene,
        Publisher(tls=server_context(tmp_path)) as elsewhere,
    ):
        padded(scene.scp)
        scene.scp.snapshot()
        feed_id = await scene.subscribe()
        feed = NEWS % (ITEM % ("From the feed", "fed"))
        scene.site.put("/", feed, type="application/rss+xml")

        path = scene.scp.delta(scene.scp.put("a", "A"))
        here, there = scene.site.url(path), elsewhere.url(path)
        scene.scp.named[-1] = scene.scp.named[-1].replace(here, there)
        scene.scp.publish()
        await scene.api.fetch(feed_id)

        await scene.until_told(("new", "From the feed"))
        problems = (await scene.api.feed(feed_id))["problems"]
        expected = f"{there}: the server's certificate is not valid: self-signed"
        assert any(expected in each for each in problems), problems
