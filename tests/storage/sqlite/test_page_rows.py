"""What is in the tables of pages, and what former versions have left there."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from hub.publishing.page_visibility import PageUpdater
from protocols.model import Feed
from storage.contract import Storage
from storage.records import FeedState, PageId
from tests.support.clock import ManualClock
from tests.support.documents import an_entry
from tests.support.new_database import open_new
from tests.support.public_feeds import PublicFeeds

MONTH = 30 * 24 * 3_600.0


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[Storage]:
    opened = await open_new(tmp_path / "hub.db")
    try:
        yield opened
    finally:
        await opened.close()


async def test_a_feed_that_is_purged_while_it_is_judged_leaves_nothing(
    storage: Storage, tmp_path: Path
) -> None:
    feed = await PublicFeeds(storage).add(head=Feed(unlisted=True))
    [news] = await storage.pages.feed_news(9)
    clock = ManualClock()
    now = clock.now()
    await storage.feeds.set_state(feed.id, FeedState.REMOVED, now)
    clock.advance(MONTH)
    assert await storage.feeds.purge_removed(clock.now(), 9) == 1

    await storage.pages.set_origin(news, "judged")

    with closing(sqlite3.connect(tmp_path / "hub.db")) as database:
        assert database.execute("SELECT * FROM page_origins").fetchall() == []


async def test_pages_of_before_languages_were_noted_are_not_rewritten_for_that(
    storage: Storage, tmp_path: Path
) -> None:
    feeds = PublicFeeds(storage)
    feed = await feeds.add(category="news")
    await feeds.publish(feed, an_entry("a"))
    keeper = PageUpdater(storage.pages, ManualClock(), "https://hub.example", "de")
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
