"""A creator's feed.json from registration to withdrawal, on real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.command import fanfare, knowing
from tests.support.creator import a_creator_feed, an_item
from tests.support.hub_process import HubApi, HubProcess
from tests.support.publisher import Publisher
from tests.support.subscribers import Subscriber, Subscribers
from tests.support.waiting import eventually

FEED = "/feed.json"


class Scene(NamedTuple):
    site: Publisher
    hub: HubProcess
    api: HubApi
    told: Subscriber

    async def subscribe(self) -> int:
        feed_id = await self.api.add_feed(self.site.url(FEED))
        await self.api.subscribe(
            callback=self.told.url,
            topic=self.site.url(FEED),
            format="json",
            updates="all",
        )
        return feed_id

    async def publish(self, feed_id: int, *items: object, **changes: object) -> None:
        self.site.put(FEED, a_creator_feed(*items, **changes))
        await self.api.fetch(feed_id)


@asynccontextmanager
async def a_scene(directory: Path) -> AsyncIterator[Scene]:
    async with (
        Publisher() as site,
        Subscribers() as subscribers,
        HubProcess(directory=directory) as hub,
        HubApi(hub.url) as api,
    ):
        yield Scene(site, hub, api, subscribers.add())


async def test_what_is_added_edited_and_removed_reaches_the_subscriber(
    tmp_path: Path,
) -> None:
    async with a_scene(tmp_path) as scene:
        scene.site.put(FEED, a_creator_feed("a", "b", "c"))
        feed_id = await scene.subscribe()

        await scene.publish(feed_id, "a", "b", "c", "d")
        edited = an_item("a", title="Edited")
        await scene.publish(feed_id, edited, "b", "c", "d", generatedAt="2026-05-01")
        await scene.publish(feed_id, edited, "c", "d")
        await scene.publish(feed_id, edited, "c", an_item("d", url="nowhere"))
        await scene.publish(feed_id, edited, "c", "d", an_item("e", discoverable=False))

        await eventually(lambda: len(scene.told.items) == 4)
        assert scene.told.items == [
            ("new", "On d"),
            ("new", "Edited"),
            ("deleted", "https://mara.example/posts/b"),
            ("new", "On e"),
        ]


async def test_a_feed_that_is_wrong_as_a_whole_is_told_at_registration(
    tmp_path: Path,
) -> None:
    async with a_scene(tmp_path) as scene:
        scene.site.put(FEED, a_creator_feed("a", creator={"handle": ""}))

        done = await fanfare(
            "feeds", "add", scene.site.url(FEED), variables=knowing(scene.hub)
        )

        assert done.code == 1
        assert "/creator/handle: expected a non-empty text" in done.err


async def test_problems_of_items_are_shown_and_the_document_is_kept_as_it_came(
    tmp_path: Path,
) -> None:
    async with a_scene(tmp_path) as scene:
        document = a_creator_feed("a", an_item("b", kinds=[]), mood={"wind": 3})
        scene.site.put(FEED, document)
        feed_id = await scene.api.add_feed(scene.site.url(FEED))

        shown = await scene.api.feed(feed_id)
        scene.site.put(FEED, b'{"version": 1, "creator"')
        await scene.api.fetch(feed_id)

        assert shown["problems"] == ["/items/1/kinds: expected a non-empty array"]
        assert (shown["format"], shown["dropped"]) == ("creator", 1)
        raw = await scene.api.request("GET", f"/api/feeds/{feed_id}/raw")
        assert raw == document


async def test_version_1_beside_a_later_one_is_read_instead_and_remembered(
    tmp_path: Path,
) -> None:
    async with a_scene(tmp_path) as scene:
        scene.site.put(FEED, a_creator_feed("a", "b"))
        feed_id = await scene.subscribe()
        later = a_creator_feed("a", "b", "c", version=2)

        scene.site.put("/feed.v1.json", a_creator_feed("a", "b", "c"))
        scene.site.put(FEED, later)
        await scene.api.fetch(feed_id)
        scene.site.requests.clear()
        scene.site.put("/feed.v1.json", a_creator_feed("a", "b", "c", "d"))
        await scene.api.fetch(feed_id)

        await eventually(lambda: len(scene.told.items) == 2)
        assert scene.told.items == [("new", "On c"), ("new", "On d")]
        assert scene.site.asked == ["/feed.v1.json"]

        del scene.site.documents["/feed.v1.json"]
        await scene.api.fetch(feed_id)
        await scene.api.fetch(feed_id)
        assert "version 2 of feed.json" in (await scene.api.feed(feed_id))["error"]
