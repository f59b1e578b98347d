"""Pages of what has been hidden since it was judged are left out at once."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from hub.collections.pages import PageKeeper
from protocols.model import Feed
from storage.interface import Storage
from storage.packing import pack
from storage.records import (
    EntryWrite,
    FeedChange,
    FeedState,
    PageId,
    Polling,
    StoredFeed,
)
from tests.support.clock import ManualClock
from tests.support.new_database import open_new
from tests.support.public_feeds import PublicFeeds, an_entry
from tests.support.storage_scene import START, fetch

DAY = 24 * 3_600.0


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[Storage]:
    opened = await open_new(tmp_path / "hub.db")
    try:
        yield opened
    finally:
        await opened.close()


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
    entry = EntryWrite(key="a", body=pack(an_entry("a", unlisted=True)), unlisted=True)
    await storage.log.commit(fetch(feed, entries=(entry,)))


async def delete(storage: Storage, feed: StoredFeed) -> None:
    gone = EntryWrite(key="a", body=b"", deleted=True)
    await storage.log.commit(fetch(feed, entries=(gone,)))


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
    feed, other = await feeds.add(section="news"), await feeds.add("b", section="news")
    await feeds.publish(feed, an_entry("a"))
    await feeds.publish(other, an_entry("b"))
    await PageKeeper(storage.pages, ManualClock(), "https://hub.example").catch_up()
    assert await shown(storage) == ["a", "b"]

    await hide(storage, feed)

    assert await shown(storage) == ["b"]


async def test_a_feed_that_is_purged_while_it_is_judged_leaves_nothing(
    storage: Storage, tmp_path: Path
) -> None:
    feed = await PublicFeeds(storage).add(head=Feed(unlisted=True))
    [news] = await storage.pages.feed_news(9)
    clock = ManualClock()
    await remove(storage, feed)
    clock.advance(DAY)
    assert await storage.feeds.purge_removed(clock.now(), 9) == 1

    await storage.pages.judge_feed(news, "judged")

    with closing(sqlite3.connect(tmp_path / "hub.db")) as database:
        assert database.execute("SELECT * FROM page_origins").fetchall() == []


async def test_pages_of_before_languages_were_noted_are_not_rewritten_for_that(
    storage: Storage, tmp_path: Path
) -> None:
    feeds = PublicFeeds(storage)
    feed = await feeds.add(section="news")
    await feeds.publish(feed, an_entry("a"))
    keeper = PageKeeper(storage.pages, ManualClock(), "https://hub.example", "de")
    await keeper.catch_up()
    position = await storage.pages.position()
    with closing(sqlite3.connect(tmp_path / "hub.db")) as database:
        database.executescript(
            "UPDATE pages SET language = NULL;"
            "UPDATE page_entries SET language = NULL;"
            "UPDATE section_pages SET language = NULL;"
            "INSERT INTO page_news SELECT id FROM entries;"
        )

    await keeper.catch_up()

    assert await storage.pages.position() == position
    for section in ("", "news"):
        (page,) = await storage.pages.pages(section, after=PageId(0), limit=9)
        assert page.language == "de"
