"""A plan that is confirmed is carried out, though the hub is killed meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from storage.records import FeedState, NewFeed
from tests.support.chosen_engine import CHOSEN, Engine, open_chosen
from tests.support.clock import ManualClock
from tests.support.hub_process import HubApi, HubProcess
from tests.support.waiting import eventually

FEEDS = 2_000 if CHOSEN is Engine.SQLITE else 500  # for some seconds
KILLS = 2


async def add_paused(path: Path) -> None:
    """Feeds that nobody polls."""
    now = ManualClock().now()
    storage = await open_chosen(path)

    async def add(number: int) -> None:
        new = NewFeed(url=f"https://f{number}.example/feed")
        feed, _ = await storage.feeds.add(new, now)
        await storage.feeds.set_state(feed.id, FeedState.PAUSED, now)

    await asyncio.gather(*map(add, range(FEEDS)))
    await storage.close()


async def test_a_plan_goes_on_after_each_kill_until_all_is_done(tmp_path: Path) -> None:
    hub = HubProcess(directory=tmp_path)
    await add_paused(hub.database)
    async with hub, HubApi(hub.url) as api:
        made = await api.request(
            "POST",
            "/api/plans",
            action="set_category",
            category="many",
            feeds={"state": ["paused"]},
        )
        assert made["count"] == FEEDS
        url = f"/api/plans/{made['id']}"
        await api.request("POST", f"{url}/confirm")
        seen = 0
        for _ in range(KILLS):
            found = await further_than(api, url, seen)
            await hub.kill()
            assert (found["state"], found["failed"]) == ("running", 0)
            seen = found["done"]
            await hub.start()
            await hub.wait_ready()
            assert (await api.request("GET", url))["done"] >= seen
        await eventually(lambda: is_done(api, url))

        done = await api.request("GET", url)
        assert (done["done"], done["failed"], done["left_out"]) == (FEEDS, 0, 0)
        listed = await api.request("GET", "/api/feeds?category=many&limit=1")
        assert listed["total"] == FEEDS


async def further_than(api: HubApi, url: str, seen: int) -> dict[str, Any]:
    found: dict[str, Any] = {}

    async def is_further() -> bool:
        found.update(await api.request("GET", url))
        return bool(found["done"] > seen)

    await eventually(is_further)
    return found


async def is_done(api: HubApi, url: str) -> bool:
    return bool((await api.request("GET", url))["state"] == "done")
