"""Text that was taken back is nowhere from then on, whoever else has its page."""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

import httpx2
import pytest

from hub.publishing.collection_builder import BuildOptions, CollectionBuilder
from hub.publishing.collection_publisher import CollectionPublisher
from hub.publishing.collection_store import LIST, CollectionStore
from hub.publishing.page_visibility import PageUpdater
from storage.records import (
    ClaimTerms,
    FeedChange,
    FeedState,
    NewFeed,
    Polling,
    Retention,
    StoredFeed,
)
from tests.support.documents import an_entry
from tests.support.public_feeds import PublicFeeds
from tests.support.scp_crawler import Advertised, ScpCrawler
from tests.support.services import Hub
from tests.support.storage_scene import START, fetch

HOUR = 3_600
URL = "https://example.org/x"
EARLIER = START - timedelta(days=1)
SECRET = "Entirely secret"
Hide = Callable[[Hub, StoredFeed], Awaitable[None]]


@dataclass
class Scene:
    """Two feeds in two sections have the same page; the text of the first is shown."""

    hub: Hub
    client: httpx2.AsyncClient
    first: StoredFeed
    second: StoredFeed

    async def build(self, later: float = HOUR) -> None:
        self.hub.clock.advance(later)
        await self.hub.services.collections.build(snapshots=False)

    async def advertised(self, *sections: str) -> list[Advertised]:
        crawlers = [ScpCrawler(self.client, name) for name in sections]
        return [each for crawler in crawlers for each in await crawler.advertised()]

    async def statuses(self, known: list[Advertised]) -> dict[str, set[int]]:
        found: dict[str, set[int]] = {}
        for each in known:
            answer = await self.client.get(each.url)
            found.setdefault(each.section, set()).add(answer.status_code)
        return found

    async def titles(self) -> dict[str, list[str]]:
        """Of all pages that a newcomer is given, by section."""
        found = {}
        for name in ("all", "one", "two"):
            crawler = ScpCrawler(self.client, name)
            await crawler.crawl()
            found[name] = sorted(page["title"] for page in crawler.pages.values())
        return found

    async def openfeeder(self) -> str:
        """All that it says of the page and of the text."""
        asked = [{}, {"url": URL}, {"q": "secret"}]
        answers = [await self.client.get("/openfeeder", params=each) for each in asked]
        return "".join(each.text for each in answers)


@pytest.fixture
async def scene(hub: Hub, anybody: httpx2.AsyncClient) -> Scene:
    feeds = PublicFeeds(hub.storage)
    first = await feeds.add("a", category="one")
    second = await feeds.add("b", category="two")
    mine = an_entry("mine", title="Mine")
    await feeds.publish(first, an_entry("x", title=SECRET), mine)
    older = an_entry("x", title="Of another", published=EARLIER)
    await feeds.publish(second, older)
    scene = Scene(hub, anybody, first, second)
    await scene.build(0)
    await feeds.publish(first, an_entry("x", title=f"{SECRET}!"))
    await scene.build()
    return scene


async def remove(hub: Hub, feed: StoredFeed) -> None:
    await hub.storage.feeds.set_state(feed.id, FeedState.REMOVED, START)


async def make_private(hub: Hub, feed: StoredFeed) -> None:
    await hub.storage.feeds.edit(feed.id, FeedChange(private=True), "", START)


async def keep_feed_out_of_lists(hub: Hub, feed: StoredFeed) -> None:
    await hub.storage.log.commit(fetch(feed, polling=Polling(unlisted=True), seen=b""))


async def keep_entry_out_of_lists(hub: Hub, feed: StoredFeed) -> None:
    entry = an_entry("x", unlisted=True)
    await hub.storage.log.commit(fetch(feed, entries=(entry,)))


async def delete(hub: Hub, feed: StoredFeed) -> None:
    await PublicFeeds(hub.storage).withdraw(feed, "x")


async def delete_what_was_too_old_to_be_kept(hub: Hub, feed: StoredFeed) -> None:
    more = (an_entry(str(number)) for number in range(60))
    await PublicFeeds(hub.storage).publish(feed, *more)
    assert not await hub.storage.deliveries.claim_chunks(
        ClaimTerms(lease_id=1, seconds=0, now=hub.clock.now(), limit=9)
    )
    hub.clock.advance(HOUR)
    everything = Retention(soft_age=0, soft_count=0, hard_age=0, hard_count=0)
    assert await hub.storage.log.trim(everything, hub.clock.now(), 1_000)
    await delete(hub, feed)


WAYS = [
    remove,
    make_private,
    keep_feed_out_of_lists,
    keep_entry_out_of_lists,
    delete,
    delete_what_was_too_old_to_be_kept,
]


@pytest.mark.parametrize("hide", WAYS, ids=lambda hide: hide.__name__)
async def test_withdrawn_text_is_gone_at_once_and_the_page_is_what_others_say(
    scene: Scene, hide: Hide
) -> None:
    known = await scene.advertised("all", "one", "two")
    assert await scene.statuses(known) == {"all": {200}, "one": {200}, "two": {200}}
    assert (await scene.titles())["all"] == sorted([f"{SECRET}!", "Mine"])

    await hide(scene.hub, scene.first)

    # Nothing was judged or built since.
    assert await scene.statuses(known) == {"all": {410}, "one": {410}, "two": {200}}
    assert await scene.advertised("all", "one") == []
    assert SECRET not in await scene.openfeeder()
    await scene.build()
    titles = await scene.titles()
    assert "Of another" in titles["all"]
    assert titles["two"] == ["Of another"]
    assert SECRET not in str(titles)
    assert await scene.statuses(known) == {"all": {410}, "one": {410}, "two": {200}}
    assert "Of another" in await scene.openfeeder()


async def test_text_that_another_feed_had_replaced_is_gone_with_its_feed(
    scene: Scene,
) -> None:
    known = await scene.advertised("all", "one")
    now = scene.hub.clock.now()
    newest = an_entry("x", title="Newest", published=now)
    await PublicFeeds(scene.hub.storage).publish(scene.second, newest, when=now)
    await scene.build()
    assert "Newest" in (await scene.titles())["all"]

    await remove(scene.hub, scene.first)

    assert await scene.statuses(known) == {"all": {410}, "one": {410}}
    await scene.build()
    assert (await scene.titles())["all"] == ["Newest"]


async def test_a_feed_that_changes_its_section_leaves_what_was_built_of_that_one(
    scene: Scene,
) -> None:
    known = await scene.advertised("all", "one", "two")

    moved = FeedChange(category="two")
    await scene.hub.storage.feeds.edit(scene.first.id, moved, "", START)

    assert await scene.statuses(known) == {"all": {200}, "one": {410}, "two": {200}}
    assert await scene.advertised("one") == []
    await scene.build()
    both = sorted([f"{SECRET}!", "Mine"])
    assert await scene.titles() == {"all": both, "one": [], "two": both}


async def test_a_page_whose_entry_has_another_link_now_is_withdrawn(
    scene: Scene,
) -> None:
    known = await scene.advertised("all", "one", "two")
    links = an_entry("moved").links
    moved = an_entry("x", title=f"{SECRET}!", links=links)
    await PublicFeeds(scene.hub.storage).publish(scene.first, moved)
    await scene.build()

    assert await scene.statuses(known) == {"all": {410}, "one": {410}, "two": {200}}
    crawler = ScpCrawler(scene.client)
    await crawler.crawl()
    assert crawler.pages[URL]["title"] == "Of another"
    assert crawler.pages["https://example.org/moved"]["title"] == f"{SECRET}!"


async def test_an_edit_is_no_withdrawal_and_takes_nothing_away(scene: Scene) -> None:
    known = await scene.advertised("all", "one", "two")
    edited = an_entry("x", title="Edited")
    await PublicFeeds(scene.hub.storage).publish(scene.first, edited)
    await scene.build()
    assert await scene.statuses(known) == {"all": {200}, "one": {200}, "two": {200}}


async def test_a_feed_that_has_shown_nothing_takes_nothing_away(scene: Scene) -> None:
    known = await scene.advertised("all", "one", "two")
    await PublicFeeds(scene.hub.storage).withdraw(scene.second, "x")
    assert await scene.statuses(known) == {"all": {200}, "one": {200}, "two": {410}}


async def test_a_feed_that_returns_and_goes_again_is_withdrawn_again(
    scene: Scene,
) -> None:
    for _ in range(2):
        await remove(scene.hub, scene.first)
        await scene.hub.storage.feeds.add(NewFeed(url=scene.first.url), START)
    await scene.build()
    assert f"{SECRET}!" in (await scene.titles())["one"]
    known = await scene.advertised("all", "one")
    await remove(scene.hub, scene.first)
    assert await scene.statuses(known) == {"all": {410}, "one": {410}}


async def test_files_of_what_was_withdrawn_go_and_the_rest_is_built_anew(
    scene: Scene,
) -> None:
    """By a hub that was killed before it did, too: what it has stored suffices."""
    hub = scene.hub
    known = [each.url for each in await scene.advertised("all", "one")]
    await remove(hub, scene.first)

    store = CollectionStore(hub.directory / "scp")
    store.open()
    updater = PageUpdater(hub.storage.pages, hub.clock, "http://hub.example")
    builder = CollectionBuilder(hub.storage, updater, store, hub.clock, BuildOptions())
    assert await builder.withdrawn() == {url.rpartition("/")[2] for url in known}
    await CollectionPublisher(builder, hub.clock, hub.storage.log).withdraw()

    paths = [path for path in store.directory.iterdir() if path.name != LIST]
    assert not {path.name for path in paths} & set(known)
    texts = [gzip.decompress(path.read_bytes()).decode() for path in paths]
    assert SECRET not in "".join(texts)
    assert [each.pages for each in store.generation.listed if not each.since] == [
        1,  # two, as it was
        1,
        0,
    ]
    assert not await builder.withdrawn()
