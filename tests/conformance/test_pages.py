"""Pages of what has been hidden since it was judged are left out at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from hub.publishing.page_visibility import PageUpdater
from protocols.model import Deletion
from storage.contract import Storage
from storage.records import (
    EntryVisibility,
    FeedChange,
    FeedState,
    PageId,
    Polling,
    StoredFeed,
)
from tests.support.clock import ManualClock
from tests.support.documents import an_entry
from tests.support.public_feeds import PublicFeeds
from tests.support.storage_scene import START, fetch

IS_MODELLED = False
DAY = 24 * 3_600.0


async def shown(storage: Storage) -> list[str]:
    everything = await storage.pages.pages("", after=PageId(0), limit=9)
    changes = await storage.pages.changed("", after=0, limit=9)
    of_section = await storage.pages.pages("news", after=PageId(0), limit=9)
    urls = [each.url for each in everything]
    assert [each.url for each in changes] == [each.url for each in of_section] == urls
    return [url.rpartition("/")[2] for url in urls]


async def remove(storage: Storage, feed: StoredFeed) -> None:
    await storage.feeds.set_state(feed.id, FeedState.REMOVED, START)


async def make_private(storage: Storage, feed: StoredFeed) -> None:
    await storage.feeds.edit(feed.id, FeedChange(private=True), "", START)


async def keep_feed_out_of_lists(storage: Storage, feed: StoredFeed) -> None:
    await storage.log.commit(fetch(feed, polling=Polling(unlisted=True), seen=b""))


async def keep_entry_out_of_lists(storage: Storage, feed: StoredFeed) -> None:
    entry = an_entry("a", unlisted=True)
    await storage.log.commit(fetch(feed, entries=(entry,)))


async def delete(storage: Storage, feed: StoredFeed) -> None:
    gone = Deletion(key="a", id="a")
    await storage.log.commit(fetch(feed, deletions=(gone,)))


@pytest.mark.parametrize(
    "hide",
    [
        remove,
        make_private,
        keep_feed_out_of_lists,
        keep_entry_out_of_lists,
        delete,
    ],
    ids=lambda hide: hide.__name__,
)
async def test_what_is_hidden_is_shown_no_more_before_it_is_judged_again(
    storage: Storage, hide: Callable[[Storage, StoredFeed], Awaitable[None]]
) -> None:
    feeds = PublicFeeds(storage)
    feed, other = (
        await feeds.add(category="news"),
        await feeds.add("b", category="news"),
    )
    await feeds.publish(feed, an_entry("a"))
    await feeds.publish(other, an_entry("b"))
    await PageUpdater(storage.pages, ManualClock(), "https://hub.example").catch_up()
    assert await shown(storage) == ["a", "b"]

    await hide(storage, feed)

    assert await shown(storage) == ["b"]


class OwnedPage:
    """One page, of entries in sections; an entry is named by its title."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.feeds = PublicFeeds(storage)
        self.judged: dict[str, EntryVisibility] = {}

    async def say(self, title: str, section: str, owner: int) -> None:
        if title not in self.judged:
            feed = await self.feeds.add(title, category=section)
            await self.feeds.publish(feed, an_entry(title))
        (entry_id,) = [
            each.entry_id
            for each in await self.storage.pages.news(99)
            if each.entry and each.entry.key == title
        ] or [self.judged[title].entry_id]
        self.judged[title] = EntryVisibility(
            entry_id=entry_id,
            revision=1,
            url="https://example.org/page",
            section=section,
            rank=owner,
            owner=owner,
            dated=START,
            modified=START,
        )
        await self.storage.pages.update([self.judged[title]], START)

    async def unsay(self, title: str, *, is_dropped: bool = False) -> None:
        gone = EntryVisibility(
            entry_id=self.judged[title].entry_id, revision=1, is_dropped=is_dropped
        )
        await self.storage.pages.update([gone], START)

    async def shown(self) -> dict[str, str]:
        """The title by section, where it shows the page."""
        pages = self.storage.pages
        names = [each.name for each in await pages.sections()]
        found = {}
        for name in names:
            for each in await pages.pages(name, after=PageId(0), limit=9):
                found[name] = each.entry.key
        return found

    async def withdrawals(self) -> dict[str, int]:
        sections = await self.storage.pages.sections()
        return {each.name: each.withdrawals for each in sections if each.withdrawals}


@pytest.mark.parametrize(
    ("in_one", "in_two", "expected"),
    [
        (0, 0, {"one", "two"}),
        (1, 1, {"one", "two"}),
        (3, 3, {"one", "two"}),
        (0, 1, {"one"}),
        (1, 2, {"one"}),
        (3, 2, {"two"}),
    ],
)
async def test_a_section_shows_a_page_only_if_no_other_has_a_better_owner(
    storage: Storage, in_one: int, in_two: int, expected: set[str]
) -> None:
    page = OwnedPage(storage)
    await page.say("first", "one", in_one)
    await page.say("second", "two", in_two)
    assert set(await page.shown()) - {""} == expected


async def test_a_better_owner_takes_a_page_out_of_sections_until_it_goes(
    storage: Storage,
) -> None:
    page = OwnedPage(storage)
    await page.say("stranger", "one", 3)
    await page.say("other", "two", 3)
    assert await page.shown() == {"": "other", "one": "stranger", "two": "other"}
    assert await page.withdrawals() == {}
    await page.say("owner", "three", 0)
    assert await page.shown() == {"": "owner", "three": "owner"}
    assert await page.withdrawals() == {"one": 1, "two": 1}
    await page.unsay("owner", is_dropped=True)
    assert await page.shown() == {"": "other", "one": "stranger", "two": "other"}
    assert await page.withdrawals() == {"one": 1, "two": 1}


async def test_a_feed_that_is_no_owner_any_more_leaves_the_page_to_who_is(
    storage: Storage,
) -> None:
    """Though its entry is the same."""
    page = OwnedPage(storage)
    await page.say("first", "one", 1)
    await page.say("second", "two", 1)
    await page.say("stranger", "three", 3)
    assert set(await page.shown()) == {"", "one", "two"}
    await page.say("first", "one", 3)
    assert await page.shown() == {"": "second", "two": "second"}
    assert await page.withdrawals() == {"one": 1}
    await page.say("second", "two", 3)
    assert set(await page.shown()) == {"", "one", "two", "three"}


async def test_an_entry_of_the_best_owner_is_shown_by_its_own_section_alone(
    storage: Storage,
) -> None:
    page = OwnedPage(storage)
    await page.say("stranger", "one", 3)
    await page.say("owner", "", 0)
    assert await page.shown() == {"": "owner"}
    await page.unsay("stranger", is_dropped=True)
    await page.unsay("owner", is_dropped=True)
    assert await page.shown() == {}
    assert await page.withdrawals() == {"one": 1}
