"""A hub that follows what another publishes, and one that is killed while it reads."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

from tests.support.command import fanfare, knowing
from tests.support.creator import a_creator_feed, an_item
from tests.support.hub_process import LOOPBACK, HubApi, HubProcess
from tests.support.publisher import Publisher
from tests.support.scp_site import ScpSite
from tests.support.subscribers import Subscribers
from tests.support.waiting import eventually


async def test_a_hub_that_follows_another_ends_with_the_same_entries(
    tmp_path: Path,
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = HubProcess(tmp_path / "a"), HubProcess(tmp_path / "b")
    first.settings = {**LOOPBACK, "FANFARE_PUBLIC_URL": first.url}
    async with (
        Publisher() as site,
        Subscribers() as subscribers,
        first,
        second,
        HubApi(first.url) as of_first,
        HubApi(second.url) as of_second,
    ):
        told = subscribers.add()
        site.put("/feed.json", a_creator_feed(*map(str, range(30))))
        feed = await of_first.add_feed(site.url("/feed.json"))
        await build(first, "--snapshots")

        topic = f"{first.url}/sitemap.xml"
        copy = await of_second.add_feed(topic)
        await of_second.subscribe(
            callback=told.url, topic=topic, format="json", updates="all"
        )
        assert await pages(of_second, copy) == await pages(of_first, feed)

        items = [an_item("0", title="Edited"), *map(str, range(1, 31))]
        site.put("/feed.json", a_creator_feed(*items))
        await of_first.fetch(feed)
        await build(first)
        await of_second.fetch(copy)
        await eventually(lambda: len(told.items) == 2)
        assert sorted(told.items) == [("new", "Edited"), ("new", "On 30")]

        site.put("/feed.json", a_creator_feed(*items[:-2]))
        await of_first.fetch(feed)
        await build(first, "--snapshots")
        await of_second.fetch(copy)
        shown = await of_second.feed(copy)
        assert (shown["error"], shown["problems"]) == ("", [])


async def build(hub: HubProcess, *how: str) -> None:
    done = await fanfare("scp", "build", *how, variables=knowing(hub))
    assert done.code == 0, done.err


async def pages(api: HubApi, feed_id: int) -> list[tuple[str, str]]:
    page = await api.request("GET", f"/topics/{feed_id}.normalized.json")
    return sorted((each["permalinkUrl"], each["title"]) for each in page["items"])


async def test_a_hub_killed_in_the_middle_of_a_file_loses_and_repeats_nothing(
    tmp_path: Path,
) -> None:
    async with Publisher() as site, Subscribers() as subscribers:
        told = subscribers.add()
        scp = ScpSite(site)
        for number in range(300):
            scp.put(f"old/{number}", f"Old {number}")
        scp.snapshot()
        hub = HubProcess(tmp_path)
        async with hub, HubApi(hub.url) as api:
            feed_id = await api.add_feed(scp.url)
            await api.subscribe(
                callback=told.url, topic=scp.url, format="json", updates="all"
            )
            new = [scp.put(f"new/{number}", f"New {number}") for number in range(900)]
            scp.delta(*new)
            fetching = asyncio.create_task(api.fetch(feed_id))
            await eventually(lambda: bool(told.receipts))
            await hub.kill()
            await asyncio.gather(fetching, return_exceptions=True)
        async with hub, HubApi(hub.url) as api:
            await api.fetch(feed_id)
            await eventually(lambda: len(set(told.titles)) == 900)
            shown = await api.feed(feed_id)
            assert shown["error"] == ""
            # What was in flight when it was killed may come once more, and no oftener.
            assert max(Counter(told.items).values()) <= 2
