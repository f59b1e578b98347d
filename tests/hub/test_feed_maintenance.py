from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from structlog.testing import capture_logs

from hub.core.status.feed_stats import WordList
from hub.feed_maintenance import PAGE, Maintenance
from protocols.model import Entry, Feed, Link
from storage.contract import Storage
from storage.errors import StorageError
from storage.records import FeedId, FeedStatistics, NewFeed, StoredFeed, WorkKind
from tests.support.chosen_engine import open_chosen
from tests.support.clock import ManualClock
from tests.support.storage_scene import Scene, fetch
from tests.support.work_claims import LongWork, claims_of, hold

WORDS = WordList("plug")


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[Storage]:
    opened = await open_chosen(tmp_path / "hub.db")
    try:
        yield opened
    finally:
        await opened.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def a_feed_of(
    storage: Storage, clock: ManualClock, name: str, *links: str, private: bool = False
) -> FeedId:
    """A feed of a site, with one entry for each link."""
    new = NewFeed(url=f"https://{name}.example/feed", private=private)
    feed, _ = await storage.feeds.add(new, clock.now() - timedelta(hours=1))
    entries = (
        Entry(key=link, id=link, title="a plug", links=(Link(href=link),))
        for link in links
    )
    head = Feed(links=(Link(href=f"https://{name}.example/"),))
    commit = fetch(
        feed,
        head=head,
        entries=tuple(entries),
    )
    await storage.log.commit(commit)
    return feed.id


async def test_feeds_are_maintained_once_a_day(
    storage: Storage, clock: ManualClock
) -> None:
    feed_id = await a_feed_of(storage, clock, "a", "https://b.example/page")
    keeper = Maintenance(storage, clock, WORDS, claims_of(storage, clock))

    assert await keeper.round() == 1
    assert await keeper.round() == 0
    clock.advance(24 * 3_600)
    assert await keeper.round() == 1

    found = await storage.feed_statistics.get(feed_id)
    assert found is not None
    assert (found.maintained_at, found.porn_rank) == (clock.now(), 1.0)


async def test_subscribers_and_links_of_public_feeds_make_popular(
    storage: Storage, clock: ManualClock
) -> None:
    linking = await a_feed_of(storage, clock, "a", "https://b.example/page")
    await a_feed_of(storage, clock, "s", "https://b.example/page", private=True)
    popular = await a_feed_of(storage, clock, "b")
    feed = await storage.feeds.get(popular)
    assert feed is not None
    await Scene(storage).subscribe(feed)

    keeper = Maintenance(storage, clock, None, claims_of(storage, clock))
    await keeper.round()  # that of before finds who links in those of after
    clock.advance(24 * 3_600)
    await keeper.round()

    ranks = [await storage.feed_statistics.get(each) for each in (linking, popular)]
    assert [each and each.popularity for each in ranks] == [0.0, 1.1]
    assert [each and each.porn_rank for each in ranks] == [None, None]


async def test_a_feed_without_document_has_statistics_all_the_same(
    storage: Storage, clock: ManualClock
) -> None:
    long_ago = clock.now() - timedelta(days=5)
    feed, _ = await storage.feeds.add(NewFeed(url="https://a.example/"), long_ago)

    await Maintenance(storage, clock, WORDS, claims_of(storage, clock)).round()

    assert await storage.feed_statistics.get(feed.id) == FeedStatistics(
        maintained_at=clock.now(), is_stale=True
    )


async def test_many_feeds_are_maintained_in_several_rounds(
    storage: Storage, clock: ManualClock
) -> None:
    for number in range(3 * PAGE):
        await a_feed_of(storage, clock, f"f{number}")
    keeper = Maintenance(
        storage, clock, WORDS, claims_of(storage, clock), feeds_a_round=2 * PAGE
    )

    rounds = [await keeper.round() for _ in range(3)]

    assert rounds == [2 * PAGE, PAGE, 0]


@pytest.mark.parametrize("is_known", [False, True])
async def test_one_that_cannot_be_looked_at_keeps_no_other_waiting(
    storage: Storage, clock: ManualClock, is_known: bool
) -> None:
    odd = await a_feed_of(storage, clock, "a", "https://b.example/page")
    keeper = Maintenance(storage, clock, WORDS, claims_of(storage, clock))
    if is_known:
        await keeper.round()
        clock.advance(24 * 3_600)
    feed = await storage.feeds.get(odd)
    assert feed is not None
    unreadable = Entry(key="odd", id=5)  # type: ignore[arg-type]
    await storage.log.commit(fetch(feed, entries=(unreadable,)))
    others = [await a_feed_of(storage, clock, f"f{number}") for number in range(PAGE)]

    with capture_logs() as lines:
        assert await keeper.round() == 1 + PAGE

    assert [(line["event"], line["feed"]) for line in lines] == [
        ("maintenance_failed", odd)
    ]
    assert lines[0]["exc_info"] is True
    found = await storage.feed_statistics.get(odd)
    assert found is not None
    assert found.porn_rank == (1.0 if is_known else None)
    assert all([await storage.feed_statistics.get(each) for each in others])
    assert await keeper.round() == 0


async def test_a_database_in_trouble_ends_the_round(
    storage: Storage, clock: ManualClock
) -> None:
    await a_feed_of(storage, clock, "a")
    troubled = SimpleNamespace(
        feed_statistics=storage.feed_statistics, feeds=Unreadable(), log=storage.log
    )

    with pytest.raises(StorageError):
        await Maintenance(
            cast("Storage", troubled), clock, None, claims_of(storage, clock)
        ).round()


class Unreadable:
    async def get(self, feed_id: FeedId) -> None:
        raise StorageError("the disk is gone")


class Slow:
    """Names a feed as due that is purged before anybody looks at it."""

    async def due(self, now: datetime, limit: int) -> list[FeedId]:
        return [FeedId(99)]


async def test_a_feed_that_is_purged_meanwhile_is_passed_over(
    storage: Storage, clock: ManualClock
) -> None:
    meanwhile = SimpleNamespace(feeds=storage.feeds, feed_statistics=Slow())

    assert (
        await Maintenance(
            cast("Storage", meanwhile), clock, None, claims_of(storage, clock)
        ).round()
        == 0
    )


async def test_a_feed_that_another_node_is_at_is_maintained_by_that_one_alone(
    storage: Storage, clock: ManualClock
) -> None:
    held = await a_feed_of(storage, clock, "a")
    free = await a_feed_of(storage, clock, "b")

    class Listed:
        """Read before the other one claims it."""

        async def due(self, now: datetime, limit: int) -> list[FeedId]:
            return [held, free]

        save, get = storage.feed_statistics.save, storage.feed_statistics.get
        linking = storage.feed_statistics.linking

    await hold(storage, WorkKind.STATISTICS, held, now=clock.now())
    stores = {
        name: getattr(storage, name) for name in ("feeds", "log", "subscriptions")
    }
    meanwhile = cast("Storage", SimpleNamespace(feed_statistics=Listed(), **stores))

    claims = claims_of(storage, clock)
    assert await Maintenance(meanwhile, clock, None, claims).round() == 1

    assert await storage.feed_statistics.get(held) is None
    assert await storage.feed_statistics.get(free) is not None


async def test_claims_of_feeds_that_take_long_are_renewed(
    storage: Storage, clock: ManualClock
) -> None:
    ids = [await a_feed_of(storage, clock, name) for name in "ab"]
    work = LongWork(storage.claims, clock)

    class SlowFeeds:
        async def get(self, feed_id: FeedId) -> StoredFeed | None:
            if feed_id == ids[0]:
                await work.go_on()
            return await storage.feeds.get(feed_id)

    names = ("feed_statistics", "log", "subscriptions")
    stores = {name: getattr(storage, name) for name in names}
    slow = cast("Storage", SimpleNamespace(feeds=SlowFeeds(), **stores))

    assert await Maintenance(slow, clock, None, work.claims).round() == 2
    assert work.renewed == [(WorkKind.STATISTICS, {*ids})]
