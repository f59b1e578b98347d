"""OpenFeeder on real sockets: a reader follows a hub whose publisher edits."""

from __future__ import annotations

import json
from pathlib import Path

import httpx2

from tests.support.admin import ADMIN
from tests.support.creator import a_creator_feed, an_item
from tests.support.hub_process import LOOPBACK, HubApi, HubProcess
from tests.support.openfeeder_client import OpenFeederClient, faults
from tests.support.publisher import Publisher
from tests.support.subscribers import Subscribers
from tests.support.waiting import eventually

FEED = "/feed.json"
BOT = {"User-Agent": "Mozilla/5.0 (compatible; ClaudeBot/1.0)"}


def posts(*slugs: str) -> set[str]:
    return {f"https://mara.example/posts/{slug}" for slug in slugs}


async def test_a_reader_follows_the_hub_and_bots_are_counted(tmp_path: Path) -> None:
    async with Publisher() as site, Subscribers() as subscribers:
        umami = subscribers.add("umami/api/send")
        settings = {
            **LOOPBACK,
            "FANFARE_OPENFEEDER_ANALYTICS": "umami",
            "FANFARE_OPENFEEDER_ANALYTICS_URL": subscribers.url("/umami"),
            "FANFARE_OPENFEEDER_ANALYTICS_SITE": "a-website",
        }
        hub = HubProcess(directory=tmp_path, settings=settings)
        async with hub, HubApi(hub.url) as api, httpx2.AsyncClient(headers=BOT) as http:
            site.put(FEED, a_creator_feed("a", "b", "c"))
            feed_id = await api.add_feed(site.url(FEED))
            reader = OpenFeederClient(http, base=hub.url)

            async def has(*slugs: str) -> bool:
                await reader.sync()
                return reader.pages.keys() == posts(*slugs)

            await eventually(lambda: has("a", "b", "c"))
            edited = an_item("a", title="Edited")
            site.put(FEED, a_creator_feed(edited, "c", "d"))
            await api.fetch(feed_id)
            await eventually(lambda: has("a", "c", "d"))
            url = "https://mara.example/posts/a"
            assert reader.pages[url]["title"] == "Edited"
            assert reader.deleted.keys() == posts("b")
            walker = OpenFeederClient(http, base=hub.url)
            assert set(await walker.walk(limit=2)) == posts("a", "c", "d")

            # A hint has the feed of a page asked at once.
            hidden = an_item("d", discoverable=False)
            site.put(FEED, a_creator_feed(edited, "c", hidden))
            answer = await http.post(
                f"{hub.url}/openfeeder/update",
                json={"action": "upsert", "urls": [url]},
                headers=ADMIN,
            )
            assert answer.status_code == 202
            await eventually(lambda: has("a", "c"))

            # The hub is killed, and goes on where it was.
            await hub.kill()
            await hub.start()
            await hub.wait_ready()
            before = reader.token
            await reader.sync()
            assert reader.token == before
            bad = await http.get(f"{hub.url}/openfeeder", params={"since": "soon"})
            assert (bad.status_code, faults("error", bad.json())) == (400, [])

            await eventually(lambda: bool(umami.bodies))
            event = json.loads(umami.bodies[0])["payload"]
            assert event["website"] == "a-website"
            assert event["data"]["bot_name"] == "ClaudeBot"
            assert event["data"]["endpoint"] == "discovery"
