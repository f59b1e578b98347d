"""A hub that is killed while it builds: crawlers never see half of anything."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
from pathlib import Path

import aiohttp
import httpx2

from tests.support.creator import a_creator_feed, an_item
from tests.support.hub_process import HubApi, HubProcess
from tests.support.publisher import Publisher
from tests.support.scp_crawler import ScpCrawler
from tests.support.scp_schemas import faults_of_file, faults_of_sitemap
from tests.support.waiting import eventually

PAGES = 200
KILLS = 3


async def build(hub: HubProcess) -> None:
    async with HubApi(hub.url) as api:
        await api.request("POST", "/api/scp/build", snapshots=True)


async def kill_while_it_builds(hub: HubProcess) -> None:
    building = asyncio.create_task(build(hub))

    def has_begun() -> bool:
        return building.done() or any((hub.directory / "scp").glob("*.part"))

    await eventually(has_begun)
    await hub.kill()
    with contextlib.suppress(aiohttp.ClientError):
        await building


async def test_a_hub_killed_in_the_middle_of_a_build_has_the_last_one_whole(
    tmp_path: Path,
) -> None:
    async with Publisher() as site, HubProcess(tmp_path) as hub:
        items = [str(number) for number in range(PAGES)]
        site.put("/feed.json", a_creator_feed(*items))
        async with HubApi(hub.url) as api:
            feed = await api.add_feed(site.url("/feed.json"))
        await build(hub)
        async with httpx2.AsyncClient(base_url=hub.url) as client:
            crawler = ScpCrawler(client)
            await crawler.crawl()
            assert len(crawler.pages) == PAGES
            for number in range(KILLS):
                edited = an_item(str(number), title=f"Edited {number}")
                items[number : number + 1] = [edited]
                site.put("/feed.json", a_creator_feed(*items))
                async with HubApi(hub.url) as api:
                    await api.fetch(feed)
                await kill_while_it_builds(hub)
                await hub.start()
                await hub.wait_ready()
                newcomer = ScpCrawler(client)
                await newcomer.crawl()
                assert newcomer.pages.keys() == crawler.pages.keys()
                sitemap = await client.get("/sitemap.xml")
                assert faults_of_sitemap(sitemap.content) == []
            await build(hub)
            await crawler.crawl()
            for number in range(KILLS):
                page = crawler.pages[f"https://mara.example/posts/{number}"]
                assert page["title"] == f"Edited {number}"
            for raw in crawler.raw:
                assert raw.startswith(b"<?xml") or faults_of_file(raw) == []
            kept = {path.name for path in (tmp_path / "scp").iterdir()}
            assert not [name for name in kept if name.endswith(".part")]


async def test_what_was_withdrawn_stays_gone_though_the_hub_is_killed_as_it_rebuilds(
    tmp_path: Path,
) -> None:
    async with Publisher() as site, Publisher() as other, HubProcess(tmp_path) as hub:
        items = [an_item(str(n), title=f"Secret {n}") for n in range(PAGES)]
        site.put("/feed.json", a_creator_feed(*items))
        other.put("/feed.json", a_creator_feed(an_item("0", title="Of another")))
        async with HubApi(hub.url) as api:
            await api.add_feed(other.url("/feed.json"))
            feed = await api.add_feed(site.url("/feed.json"))
        await build(hub)
        async with httpx2.AsyncClient(base_url=hub.url) as client:
            crawler = ScpCrawler(client)
            known = [each.url for each in await crawler.advertised()]
            await crawler.crawl()
            assert len(crawler.pages) == PAGES
            async with HubApi(hub.url) as api:
                await api.remove_feed(feed)
            for url in known:
                assert (await client.get(url)).status_code == 410
            await kill_while_it_builds(hub)
            await hub.start()
            await hub.wait_ready()
            for url in known:
                assert (await client.get(url)).status_code == 410
            await build(hub)
            newcomer = ScpCrawler(client)
            await newcomer.crawl()
            assert [each["title"] for each in newcomer.pages.values()] == ["Of another"]
            assert b"Secret" not in b"".join(newcomer.raw)
            await crawler.crawl()
            assert crawler.pages.keys() == newcomer.pages.keys()
            files = b"".join(
                gzip.decompress(path.read_bytes())
                for path in (tmp_path / "scp").glob("*.scp.gz")
            )
            assert b"Secret" not in files
