"""What a reader sees of a topic while entries of it arrive."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.support.chromium import Tab, in_a_browser, new_tab
from tests.support.operator_browser import HOSTILE
from tests.support.publisher import PublishedFeed
from tests.support.stage import Stage, open_stage

pytestmark = [in_a_browser, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with open_stage(tmp_path_factory.mktemp("readers")) as stage:
        yield stage


@pytest_asyncio.fixture(loop_scope="session")
async def tab(stage: Stage, chromium: Browser) -> AsyncIterator[Tab]:
    context = await chromium.new_context()
    yield await new_tab(context, stage.hub.url)
    await context.close()


async def publish(stage: Stage, feed_id: int, feed: PublishedFeed, title: str) -> None:
    escaped = title.replace("&", "&amp;").replace("<", "&lt;")
    feed.titles[feed.count + 1] = escaped
    await stage.publish(feed_id, feed)


async def until_told(tab: Tab, what: str) -> None:
    await expect(tab.page.get_by_role("status")).to_contain_text(what, timeout=30_000)


async def until_titles(tab: Tab, *titles: str) -> None:
    lines = tab.page.locator("ol > li > :first-child")
    await expect(lines).to_have_text(list(titles), timeout=30_000)


async def test_entries_appear_as_they_arrive_and_whatever_they_say_is_text(
    stage: Stage, tab: Tab
) -> None:
    feed_id, feed = await stage.add_feed()
    await tab.open(f"/topics/{feed_id}")
    await until_told(tab, "as they arrive")
    said = HOSTILE[:5]
    for each in said:
        await publish(stage, feed_id, feed, each)
    await until_titles(tab, *reversed(said), "Entry 1")
    first = tab.page.locator("ol > li > a").first
    assert await first.get_attribute("href") == (
        f"https://publisher.example/{feed.number}/{feed.count}"
    )
    assert await tab.page.locator("ol img, ol script, ol style").count() == 0
    assert tab.complaints == []


async def test_a_page_of_a_hub_that_comes_back_gets_what_came_meanwhile(
    stage: Stage, tab: Tab
) -> None:
    feed_id, feed = await stage.add_feed()
    await tab.open(f"/topics/{feed_id}")
    await until_told(tab, "as they arrive")
    await stage.hub.kill()
    await until_told(tab, "The connection was lost")
    await stage.hub.start()
    await stage.hub.wait_ready()
    await publish(stage, feed_id, feed, "While it was away")
    await until_titles(tab, "While it was away", "Entry 1")
    await until_told(tab, "as they arrive")
