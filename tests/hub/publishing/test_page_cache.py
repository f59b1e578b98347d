"""Pages are kept while their entries stay as they are, and only so many."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hub.publishing.page_cache import LARGEST_KEPT, MOST_CHARACTERS, PageCache
from hub.publishing.page_visibility import PageUpdater
from protocols.model import Feed, Text
from protocols.openfeeder.write.content_queries import AuthorDisplay
from storage.records import ListedPage
from tests.support.documents import an_entry
from tests.support.public_feeds import PublicFeeds
from tests.support.services import Hub, open_hub


async def listed(hub: Hub) -> Sequence[ListedPage]:
    updater = PageUpdater(hub.storage.pages, hub.clock, "http://hub.example")
    await updater.catch_up()
    return await hub.storage.page_list.page(skip=0, limit=100)


def a_cache(hub: Hub, capacity: int = 10) -> PageCache:
    return PageCache(hub.clock, "en", AuthorDisplay.NAME, capacity)


async def ages(cache: PageCache, pages: Sequence[ListedPage]) -> list[int | None]:
    return [each.kept_for for each in await cache.make(pages)]


async def test_a_page_is_kept_until_its_entry_changes(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        feeds = PublicFeeds(hub.storage)
        feed = await feeds.add(head=Feed(title="F", language="fr"))
        await feeds.publish(feed, an_entry("a"))
        cache = a_cache(hub)
        assert await ages(cache, await listed(hub)) == [None]
        hub.clock.advance(5)
        assert await ages(cache, await listed(hub)) == [5]
        await feeds.publish(feed, an_entry("a", title="Other"))
        [made] = await cache.make(await listed(hub))
        assert (made.kept_for, made.page.facts.title) == (None, "Other")
        assert made.page.facts.language == "fr"


@pytest.mark.parametrize("capacity", [1, 3])
async def test_those_not_asked_for_longest_go(tmp_path: Path, capacity: int) -> None:
    async with open_hub(tmp_path) as hub:
        feeds = PublicFeeds(hub.storage)
        feed = await feeds.add()
        await feeds.publish(feed, *(an_entry(str(n)) for n in range(5)))
        cache = a_cache(hub, capacity)
        pages = await listed(hub)
        await cache.make(pages)
        kept = [each for each in await ages(cache, pages[-capacity:]) if each == 0]
        assert len(kept) == capacity
        assert await ages(cache, pages[:1]) == [None]


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        (Text(value=f"<p>{'a word ' * 140_000}</p>"), 0),
        (Text(value="a word " * (LARGEST_KEPT // 7 + 1), type="text"), None),
    ],
)
async def test_only_the_very_largest_are_made_anew_each_time(
    tmp_path: Path, content: Text, kept: int | None
) -> None:
    async with open_hub(tmp_path) as hub:
        feeds = PublicFeeds(hub.storage)
        feed = await feeds.add()
        await feeds.publish(feed, an_entry("a", content=content))
        cache = a_cache(hub)
        pages = await listed(hub)
        assert await ages(cache, pages) == [None]
        assert await ages(cache, pages) == [kept]


async def test_all_together_are_bounded_too(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        feeds = PublicFeeds(hub.storage)
        feed = await feeds.add()
        words = Text(value=f"<p>{'a word ' * 9_000}</p>")
        count = MOST_CHARACTERS // 62_999 + 2
        entries = [an_entry(str(n), content=words) for n in range(count)]
        await feeds.publish(feed, *entries)
        cache = a_cache(hub, capacity=10_000)
        await listed(hub)
        pages = await hub.storage.page_list.page(skip=0, limit=1_000)
        await cache.make(pages)
        assert await ages(cache, pages[-1:]) == [0]
        assert await ages(cache, pages[:1]) == [None]
