"""The list of all pages: any part of it, and what changes in it."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest

from hub.publishing.page_visibility import PageUpdater
from storage.contract import Storage
from storage.records import FeedState, ListedPage
from tests.support.clock import ManualClock
from tests.support.documents import an_entry
from tests.support.public_feeds import FAR_APART, PublicFeeds, publish_far_apart
from tests.support.storage_scene import START

IS_MODELLED = False


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def keeper(storage: Storage, clock: ManualClock) -> PageUpdater:
    return PageUpdater(storage.pages, clock, "https://hub.example")


async def everything(storage: Storage) -> list[ListedPage]:
    return await storage.page_list.page(skip=0, limit=1_000)


async def test_pages_come_newest_first_whatever_part_is_asked_for(
    storage: Storage, keeper: PageUpdater
) -> None:
    urls = await publish_far_apart(storage, keeper)
    assert len(urls) == 3 * len(FAR_APART)
    dates = [each.page.entry for each in await everything(storage)]
    assert len(dates) == len(set(urls))
    for limit in (1, 2, 5, 50):
        for skip in range(len(urls) + 2):
            part = await storage.page_list.page(skip=skip, limit=limit)
            assert [each.page.url for each in part] == urls[skip : skip + limit]
    assert await storage.page_list.page(skip=10**12, limit=10) == []


async def test_an_empty_list_has_no_pages(storage: Storage) -> None:
    assert await storage.page_list.page(skip=0, limit=10) == []
    state = await storage.page_list.state()
    assert (state.count, state.change) == (0, 0)
    assert await storage.page_list.last_before(START) == 0


async def test_counts_follow_what_comes_changes_and_goes(
    storage: Storage, keeper: PageUpdater, clock: ManualClock
) -> None:
    feeds = PublicFeeds(storage)
    feed, other = await feeds.add("a"), await feeds.add("b")
    await feeds.publish(feed, *(an_entry(str(n)) for n in range(5)))
    await feeds.publish(other, an_entry("0"), an_entry("only"))
    await keeper.catch_up()
    assert (await storage.page_list.state()).count == 6
    await feeds.publish(feed, an_entry("1", title="Other"))
    await feeds.withdraw(feed, "0", "2")
    clock.advance(10)
    await keeper.catch_up()
    found = [each.page.url for each in await everything(storage)]
    assert sorted(found) == [
        f"https://example.org/{key}" for key in ("0", "1", "3", "4", "only")
    ]
    assert (await storage.page_list.state()).count == 5
    await storage.feeds.set_state(feed.id, FeedState.REMOVED, START)
    assert len(await everything(storage)) == 2  # at once, before it is judged
    await keeper.catch_up()
    assert (await storage.page_list.state()).count == 2


async def test_a_page_is_found_by_its_url_and_by_its_entry(
    storage: Storage, keeper: PageUpdater
) -> None:
    feeds = PublicFeeds(storage)
    feed = await feeds.add()
    await feeds.publish(feed, an_entry("a"), an_entry("b"))
    await keeper.catch_up()
    found = await storage.page_list.find("https://example.org/a")
    assert found is not None
    [same] = await storage.page_list.of_entries([found.page.entry.id])
    assert same == found
    assert await storage.page_list.find("https://example.org/c") is None
    await feeds.withdraw(feed, "a")
    assert await storage.page_list.find("https://example.org/a") is None


async def test_changes_come_in_order_and_times_grow_with_them(
    storage: Storage, keeper: PageUpdater, clock: ManualClock
) -> None:
    feeds = PublicFeeds(storage)
    feed = await feeds.add()
    for number in range(4):  # the clock stands still, and is even put back
        clock.advance(-(number // 2))
        await feeds.publish(feed, an_entry("x", title=str(number)))
        await feeds.publish(feed, an_entry(str(number)))
        await keeper.catch_up()
    await feeds.withdraw(feed, "1")
    await keeper.catch_up()
    changes = await storage.page_list.changes(after=0, through=99, limit=100)
    assert [each.url.rpartition("/")[2] for each in changes] == [
        "0",
        "2",
        "x",
        "3",
        "1",
    ]
    assert [each.page is None for each in changes] == [False] * 4 + [True]
    for one, following in pairwise(changes):
        assert one.change < following.change
        assert one.changed_at <= following.changed_at
    assert changes[0].changed_at < changes[1].changed_at < changes[2].changed_at
    state = await storage.page_list.state()
    assert (state.change, state.changed_at) == (
        changes[-1].change,
        changes[-1].changed_at,
    )
    moment = changes[2].changed_at
    before = await storage.page_list.last_before(moment)
    assert changes[1].change <= before < changes[2].change
    through = await storage.page_list.last_before(moment + timedelta(milliseconds=1))
    until = await storage.page_list.changes(after=before, through=through, limit=9)
    assert [each.url.rpartition("/")[2] for each in until] == ["x", "3"]
    assert changes[2].page is not None
    assert changes[2].page.shown_at < changes[2].changed_at


async def test_a_page_that_returns_is_shown_anew(
    storage: Storage, keeper: PageUpdater, clock: ManualClock
) -> None:
    feeds = PublicFeeds(storage)
    feed = await feeds.add()
    await feeds.publish(feed, an_entry("a"))
    await keeper.catch_up()
    [first] = await everything(storage)
    await feeds.withdraw(feed, "a")
    clock.advance(60)
    await keeper.catch_up()
    clock.advance(60)
    await feeds.publish(feed, an_entry("a"))
    await keeper.catch_up()
    [again] = await everything(storage)
    assert again.shown_at == first.shown_at + timedelta(seconds=120)
