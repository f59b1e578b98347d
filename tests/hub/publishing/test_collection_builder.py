"""Builds against everything that goes on beside them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from random import Random

import httpx2
import pytest

from hub.publishing.collection_builder import BuildOptions, CollectionBuilder
from hub.publishing.collection_publisher import PROMPT_SECONDS, CollectionPublisher
from hub.publishing.collection_store import LIST, CollectionStore, Generation
from hub.publishing.page_visibility import PageUpdater, visibility_of
from hub.services.served_collections import CollectionService
from hub.services.service_errors import Conflict
from protocols.model import Entry, Feed
from storage.errors import NotFound, StorageClosed
from storage.packing import unpack
from storage.records import (
    ClaimTerms,
    EntryId,
    FeedState,
    FetchCommit,
    NewFeed,
    PageId,
    Polling,
    PublishedPage,
    Retention,
    StoredFeed,
)
from tests.support.application_client import client_of
from tests.support.documents import an_entry
from tests.support.public_feeds import PublicFeeds
from tests.support.scp_crawler import ScpCrawler
from tests.support.services import Hub, open_hub
from tests.support.storage_scene import START
from tests.support.waiting import eventually

HOUR = 3_600


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with open_hub(tmp_path) as hub:
        yield hub


@pytest.fixture
async def client(hub: Hub) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(hub.application) as client:
        yield client


def a_store(hub: Hub) -> CollectionStore:
    store = CollectionStore(hub.directory / "scp")
    store.open()
    return store


def a_builder(hub: Hub, store: CollectionStore) -> CollectionBuilder:
    updater = PageUpdater(hub.storage.pages, hub.clock, "http://hub.example")
    return CollectionBuilder(
        hub.storage,
        updater,
        store,
        hub.clock,
        BuildOptions(),
        sleep=hub.clock.sleep,
    )


async def titles(hub: Hub, feed: StoredFeed) -> dict[str, str]:
    """What the database has of a feed, by URL."""
    listed = await hub.storage.public.entries(feed.id, before=None, limit=1_000)
    entries = [unpack(each.entry.body, Entry) for each in listed]
    return {each.links[0].href: each.title for each in entries if not each.unlisted}


async def change_something(
    hub: Hub, feed: StoredFeed, random: Random, number: int
) -> None:
    """Add, edit, withdraw, bring back or keep out of lists one of a few entries."""
    feeds, now = PublicFeeds(hub.storage), hub.clock.now()
    key = f"k{random.randrange(8)}"
    is_there = f"https://example.org/{key}" in await titles(hub, feed)
    if is_there and random.random() < 0.25:
        await feeds.withdraw(feed, key, when=now)
    else:
        is_unlisted = random.random() < 0.1
        entry = an_entry(key, title=f"Title {number}", unlisted=is_unlisted)
        await feeds.publish(feed, entry, when=now)


@pytest.mark.parametrize("seed", range(6))
async def test_crawlers_end_equal_to_the_database(
    hub: Hub, client: httpx2.AsyncClient, seed: int
) -> None:
    random = Random(seed)
    feed = await PublicFeeds(hub.storage).add(category="s")
    crawlers = [ScpCrawler(client), ScpCrawler(client, "s")]
    for step in range(12):
        for change in range(random.randrange(4)):
            await change_something(hub, feed, random, 10 * step + change)
        hub.clock.advance(random.choice([0, 0.4, 60, HOUR, 30 * HOUR]))
        await hub.services.collections.build(snapshots=random.random() < 0.2)
        for crawler in crawlers:
            if random.random() < 0.7:
                await crawler.crawl()
    known = await titles(hub, feed)
    for crawler in crawlers:
        await crawler.crawl()
        assert {url: page["title"] for url, page in crawler.pages.items()} == known
    check_history(crawlers)


def check_history(crawlers: Sequence[ScpCrawler]) -> None:
    """Whatever was published of a URL, in any section: one content for each date."""
    for url in {url for crawler in crawlers for url in crawler.history}:
        states = {each for it in crawlers for each in it.history.get(url, [])}
        assert len(states) == len(dict(states)), url


async def test_an_entry_that_changes_while_it_is_read_is_judged_again(
    hub: Hub, client: httpx2.AsyncClient
) -> None:
    feeds = PublicFeeds(hub.storage)
    feed = await feeds.add()
    await feeds.publish(feed, an_entry("a", title="One"))

    class Meddled:
        """The first read of pages comes with an edit."""

        def __init__(self) -> None:
            self.is_done = False

        def __getattr__(self, name: str) -> object:
            return getattr(hub.storage.pages, name)

        async def pages(
            self, section: str, *, after: PageId, limit: int
        ) -> Sequence[PublishedPage]:
            if not self.is_done:
                self.is_done = True
                hub.clock.advance(5)
                await feeds.publish(feed, an_entry("a", title="Two"))
            return await hub.storage.pages.pages(section, after=after, limit=limit)

    class MeddledStorage:
        pages = Meddled()
        log = hub.storage.log

    updater = PageUpdater(hub.storage.pages, hub.clock, "http://hub.example")
    builder = CollectionBuilder(
        MeddledStorage(),  # type: ignore[arg-type]
        updater,
        a_store(hub),
        hub.clock,
        BuildOptions(),
    )
    (built,) = await builder.build()
    assert built.pages == 1
    (page,) = await hub.storage.pages.pages("", after=PageId(0), limit=9)
    assert not page.is_stale
    assert page.modified > START
    hub.clock.advance(HOUR)
    (delta,) = await builder.build()
    assert delta.pages == 1  # it was changed after the snapshot had begun


async def test_it_is_known_how_many_pages_a_build_has_written(hub: Hub) -> None:
    feeds = PublicFeeds(hub.storage)
    await feeds.publish(await feeds.add(), *map(an_entry, "abcde"))
    written: list[int | None] = []

    class FewAtATime:
        def __getattr__(self, name: str) -> object:
            return getattr(hub.storage.pages, name)

        async def pages(
            self, section: str, *, after: PageId, limit: int
        ) -> Sequence[PublishedPage]:
            written.append(builder.pages_written)
            return await hub.storage.pages.pages(section, after=after, limit=2)

    class FewPages:
        pages = FewAtATime()
        log = hub.storage.log

    builder = CollectionBuilder(
        FewPages(),  # type: ignore[arg-type]
        PageUpdater(hub.storage.pages, hub.clock, "http://hub.example"),
        a_store(hub),
        hub.clock,
        BuildOptions(),
    )
    await builder.build()
    assert written == [0, 2, 4, 5]
    assert builder.pages_written is None


async def test_entries_only_too_old_to_be_kept_go_with_the_next_snapshot(
    hub: Hub, client: httpx2.AsyncClient
) -> None:
    feeds = PublicFeeds(hub.storage)
    feed = await feeds.add()
    await feeds.publish(feed, *(an_entry(f"{n:03}") for n in range(60)))
    await hub.services.collections.build(snapshots=False)
    assert not await hub.storage.deliveries.claim_chunks(
        ClaimTerms(lease_id=1, seconds=0, now=hub.clock.now(), limit=9)
    )
    everything = Retention(soft_age=0, soft_count=0, hard_age=0, hard_count=0)
    hub.clock.advance(HOUR)
    assert await hub.storage.log.trim(everything, hub.clock.now(), 1_000)
    assert await hub.services.collections.build(snapshots=False) == ()
    built = await hub.services.collections.build(snapshots=True)
    assert [each.pages for each in built] == [0, 50]
    crawler = ScpCrawler(client)
    await crawler.crawl()
    assert len(crawler.pages) == 50


async def test_a_feed_that_is_kept_out_of_lists_is_withdrawn_and_returns(
    hub: Hub, client: httpx2.AsyncClient
) -> None:
    feeds = PublicFeeds(hub.storage)
    feed = await feeds.add()
    await feeds.publish(feed, an_entry("a"))
    crawler = ScpCrawler(client)
    for is_unlisted, count in ((False, 1), (True, 0), (True, 0), (False, 1)):
        head = Feed(title="A", unlisted=is_unlisted)
        now = hub.clock.now()
        await hub.storage.log.commit(
            FetchCommit(
                feed_id=feed.id, at=now, next_fetch=now, polling=Polling(), head=head
            )
        )
        await hub.services.collections.build(snapshots=False)
        await crawler.crawl()
        assert len(crawler.pages) == count
        hub.clock.advance(HOUR)


async def test_a_crash_leaves_the_last_generation_whole(hub: Hub) -> None:
    feeds = PublicFeeds(hub.storage)
    feed = await feeds.add()
    await feeds.publish(feed, an_entry("a"))
    store = a_store(hub)
    await a_builder(hub, store).build()
    before = store.generation
    # What a process leaves that was killed while it built the next one.
    (store.directory / "delta.pages.part").write_bytes(b"half a li")
    (store.directory / "all-delta-20260101T010000Z-abc.scp.gz").write_bytes(b"whole")
    (store.directory / "collections.part").write_bytes(b"{")
    again = a_store(hub)
    assert again.generation == before
    kept = {each.name for each in again.directory.iterdir()}
    assert kept == {LIST, *(each.name for each in before.collections)}
    # It goes on where it was.
    await feeds.publish(feed, an_entry("b"))
    hub.clock.advance(HOUR)
    (delta,) = await a_builder(hub, again).build()
    assert delta.since == before.collections[0].generated


@pytest.mark.parametrize("torn", [b"no list", b'{"epoch": "\xed\xa0\x80"}'])
async def test_an_unreadable_list_is_built_anew(hub: Hub, torn: bytes) -> None:
    store = a_store(hub)
    (store.directory / LIST).write_bytes(torn)
    assert a_store(hub).generation == Generation()


async def test_positions_of_another_database_are_not_believed(
    hub: Hub, client: httpx2.AsyncClient
) -> None:
    feeds = PublicFeeds(hub.storage)
    feed = await feeds.add()
    await feeds.publish(feed, an_entry("a"))
    store = a_store(hub)
    builder = a_builder(hub, store)
    (first,) = await builder.build()
    store.generation = replace(store.generation, epoch="another")
    hub.clock.advance(HOUR)
    (anew,) = await builder.build()
    assert anew.since is None
    assert anew.generated > first.generated
    assert store.generation.listed == (anew,)
    assert store.find(first.name) is not None  # served to who knows it


async def test_what_was_built_of_another_database_goes_with_the_first_withdrawal(
    hub: Hub, client: httpx2.AsyncClient
) -> None:
    feeds = PublicFeeds(hub.storage)
    feed = await feeds.add()
    await feeds.publish(feed, an_entry("a"))
    store = a_store(hub)
    builder = a_builder(hub, store)
    (first,) = await builder.build()
    numbered = replace(first, withdrawals=1_000)  # what nothing here has come to yet
    store.generation = replace(
        store.generation, epoch="another", collections=(numbered,)
    )
    await feeds.withdraw(feed, "a")
    hub.clock.advance(HOUR)
    await builder.build()
    assert store.find(first.name) is None


async def test_a_section_in_which_nothing_changes_is_not_looked_through_again(
    hub: Hub,
) -> None:
    feeds = PublicFeeds(hub.storage)
    quiet, busy = await feeds.add(category="quiet"), await feeds.add("b")
    await feeds.publish(quiet, an_entry("a"))
    store = a_store(hub)
    builder = a_builder(hub, store)
    await builder.build()
    before = store.generation.chains["quiet"]
    await feeds.publish(busy, an_entry("b"))
    hub.clock.advance(HOUR)
    assert [each.section for each in await builder.build()] == ["all"]
    after = store.generation.chains["quiet"]
    assert after.position == await hub.storage.pages.position() > before.position
    # The window of its next delta begins where the last one ended all the same.
    await feeds.publish(quiet, an_entry("c"))
    hub.clock.advance(HOUR)
    (found,) = [each for each in await builder.build() if each.section == "quiet"]
    assert found.since == before.generated


async def test_time_that_goes_back_neither_repeats_nor_loses_a_change(
    hub: Hub, client: httpx2.AsyncClient
) -> None:
    feeds = PublicFeeds(hub.storage)
    feed = await feeds.add()
    crawler = ScpCrawler(client)
    moments = []
    for number, step in enumerate((HOUR, -3 * HOUR, 60, -86_400, 5 * HOUR)):
        hub.clock.advance(step)
        now = hub.clock.now()
        await feeds.publish(feed, an_entry("a", title=f"T{number}"), when=now)
        built = await hub.services.collections.build(snapshots=False)
        moments += [each.generated for each in built]
        await crawler.crawl()
        assert crawler.pages["https://example.org/a"]["title"] == f"T{number}"
    assert moments == sorted(moments)


@pytest.mark.parametrize("fraction", [0, 0.4])
async def test_nothing_is_generated_or_modified_after_the_date_of_its_answer(
    hub: Hub, client: httpx2.AsyncClient, fraction: float
) -> None:
    """Though a page is edited thrice in a second, and each time built."""
    feeds = PublicFeeds(hub.storage)
    feed = await feeds.add()
    hub.clock.advance(fraction)
    began = hub.clock.now()
    for number in range(3):
        await feeds.publish(feed, an_entry("a", title=f"T{number}"))
        for each in await hub.services.collections.build(snapshots=True):
            now = hub.clock.now()
            assert each.generated <= now
            answer = await client.head(f"/scp/{each.name}")
            modified = parsedate_to_datetime(answer.headers["last-modified"])
            assert modified <= now
    assert hub.clock.now() - began <= timedelta(seconds=3)


async def test_a_clock_that_was_set_back_dates_no_answer_after_itself(
    hub: Hub, client: httpx2.AsyncClient
) -> None:
    await PublicFeeds(hub.storage).publish(
        await PublicFeeds(hub.storage).add(), an_entry("a")
    )
    (each,) = await hub.services.collections.build(snapshots=False)
    hub.clock.advance(-HOUR)
    for path in (f"/scp/{each.name}", "/sitemap.xml"):
        answer = await client.get(path)
        modified = parsedate_to_datetime(answer.headers["last-modified"])
        assert modified <= hub.clock.now()


async def test_what_a_clock_generated_that_was_days_ahead_is_taken_back(
    hub: Hub, client: httpx2.AsyncClient
) -> None:
    feeds = PublicFeeds(hub.storage)
    feed = await feeds.add()
    hub.clock.advance(400 * 24 * HOUR)
    await feeds.publish(feed, an_entry("a", title="Ahead"), when=hub.clock.now())
    (ahead,) = await hub.services.collections.build(snapshots=False)
    hub.clock.advance(-400 * 24 * HOUR)
    (anew,) = await hub.services.collections.build(snapshots=False)
    assert anew.generated <= hub.clock.now()
    assert (await client.get(f"/scp/{ahead.name}")).status_code == 410
    crawler = ScpCrawler(client)
    await crawler.crawl()
    assert [page["title"] for page in crawler.pages.values()] == ["Ahead"]
    assert crawler.pages["https://example.org/a"]["modified"] <= crawler.generated
    hub.clock.advance(HOUR)
    await feeds.publish(feed, an_entry("a", title="Now"), when=hub.clock.now())
    await hub.services.collections.build(snapshots=False)
    newcomer = ScpCrawler(client)
    await newcomer.crawl()
    assert [page["title"] for page in newcomer.pages.values()] == ["Now"]


async def test_a_withdrawal_is_published_soon_but_not_again_and_again(
    hub: Hub,
) -> None:
    feeds = PublicFeeds(hub.storage)
    feed = await feeds.add()
    await feeds.publish(feed, an_entry("a"), an_entry("b"))
    store = a_store(hub)
    publisher = CollectionPublisher(a_builder(hub, store), hub.clock, hub.storage.log)
    await publisher.build()
    await publisher.keep_up()
    assert len(store.generation.listed) == 1
    await feeds.withdraw(feed, "a")
    await publisher.keep_up()
    assert [each.pages for each in store.generation.listed] == [2]
    hub.clock.advance(PROMPT_SECONDS)
    await publisher.keep_up()
    assert [each.pages for each in store.generation.listed] == [0, 1]


async def test_switched_off_nothing_is_built_but_pages_are_kept_up(hub: Hub) -> None:
    feeds = PublicFeeds(hub.storage)
    feed = await feeds.add()
    await feeds.publish(feed, an_entry("a"))
    store = a_store(hub)
    builder = a_builder(hub, store)
    await CollectionPublisher(
        builder, hub.clock, hub.storage.log, is_on=False
    ).keep_up()
    assert await hub.storage.pages.position() == 1
    assert store.generation == Generation()
    service = CollectionService(
        builder,
        store,
        hub.clock,
        "http://h",
        CollectionPublisher(builder, hub.clock, hub.storage.log, is_on=False),
        is_on=False,
    )
    assert "Sitemap" not in service.robots()
    with pytest.raises(NotFound):
        await service.sitemap()
    with pytest.raises(NotFound):
        await service.find("x")
    with pytest.raises(Conflict):
        await service.build(snapshots=True)


async def test_trouble_waits_for_the_next_time(hub: Hub) -> None:
    publisher = CollectionPublisher(
        a_builder(hub, a_store(hub)), hub.clock, hub.storage.log
    )
    await hub.storage.close()
    with pytest.raises(StorageClosed):
        await hub.storage.pages.position()
    await publisher.build()
    await publisher.keep_up()


@pytest.mark.parametrize("is_on", [True, False])
async def test_a_publisher_builds_at_once_and_runs_until_it_is_cancelled(
    hub: Hub, is_on: bool
) -> None:
    feeds = PublicFeeds(hub.storage)
    await feeds.publish(await feeds.add(), an_entry("a"))
    store = a_store(hub)
    task = asyncio.create_task(
        CollectionPublisher(
            a_builder(hub, store), hub.clock, hub.storage.log, is_on=is_on
        ).run()
    )

    async def is_done() -> bool:
        if is_on:
            return bool(store.generation.listed)
        return await hub.storage.pages.position() == 1

    await eventually(is_done)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_many_entries_are_judged_in_pages(hub: Hub) -> None:
    feeds = PublicFeeds(hub.storage)
    feed = await feeds.add()
    await feeds.publish(feed, *(an_entry(str(n)) for n in range(450)))
    for n in range(210):
        await hub.storage.feeds.add(NewFeed(url=f"https://{n}.example/"), START)
    assert await a_builder(hub, a_store(hub)).catch_up() == 450
    assert len(await hub.storage.pages.pages("", after=PageId(0), limit=999)) == 450


async def test_an_entry_changed_between_reading_and_judging_stays_news(
    hub: Hub,
) -> None:
    feeds = PublicFeeds(hub.storage)
    feed = await feeds.add()
    await feeds.publish(feed, an_entry("a"))
    (news,) = await hub.storage.pages.news(9)
    judged = visibility_of(news, "http://hub.example", START)
    await feeds.publish(feed, an_entry("a", title="Two"))
    await hub.storage.pages.update([judged], START)
    assert [each.entry_id for each in await hub.storage.pages.news(9)] == [EntryId(1)]


async def test_a_feed_that_moves_while_it_is_judged_stays_news(hub: Hub) -> None:
    feed = await PublicFeeds(hub.storage).add()
    (news,) = await hub.storage.pages.feed_news(9)
    await hub.storage.feeds.set_state(feed.id, FeedState.REMOVED, START)
    await hub.storage.pages.set_origin(news, "as it is")
    (again,) = await hub.storage.pages.feed_news(9)
    assert again.is_moved
    await hub.storage.pages.set_origin(again, "as it is")
    assert await hub.storage.pages.feed_news(9) == []
