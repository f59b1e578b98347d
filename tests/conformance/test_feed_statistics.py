from __future__ import annotations

from datetime import timedelta

from storage.contract import Storage
from storage.records import (
    FeedId,
    FeedState,
    FeedStatistics,
    FeedStatisticsWrite,
    Polling,
    WorkKind,
)
from tests.support.storage_scene import MINUTE, START, Scene, fetch
from tests.support.work_claims import ALL_IS_DUE, hold, save_statistics

IS_MODELLED = False
DAY = timedelta(days=1)


async def stand(storage: Storage, feed_id: int, site: str = "", *places: str) -> None:
    await save_statistics(storage, standing(feed_id, site, *places))


def standing(feed_id: int, site: str, *places: str) -> FeedStatisticsWrite:
    statistics = FeedStatistics(maintained_at=START, popularity=1.5, porn_rank=0.2)
    return FeedStatisticsWrite(
        feed_id=FeedId(feed_id),
        statistics=statistics,
        site=site,
        places=frozenset(places),
        due=START + DAY,
    )


async def test_a_feed_is_due_ten_minutes_after_it_was_added_and_then_as_it_says(
    storage: Storage,
) -> None:
    first, second = [(await Scene(storage).add_feed(name)).id for name in "ab"]

    assert await storage.feed_statistics.due(START + 9 * MINUTE, 9) == []
    assert await storage.feed_statistics.due(START + 10 * MINUTE, 9) == [first, second]
    assert await storage.feed_statistics.due(START + DAY, 1) == [first]

    await stand(storage, first)
    assert await storage.feed_statistics.due(START + 10 * MINUTE, 9) == [second]
    assert await storage.feed_statistics.due(START + DAY, 9) == [second, first]

    await storage.feeds.set_state(second, FeedState.REMOVED, START)
    assert await storage.feed_statistics.due(START + DAY, 9) == [first]


async def test_statistics_go_with_what_a_fetch_starts_from(storage: Storage) -> None:
    feed = await Scene(storage).add_feed()
    [before] = await storage.feeds.targets([feed.id])
    assert before.statistics is await storage.feed_statistics.get(feed.id) is None

    await stand(storage, feed.id)

    [after] = await storage.feeds.targets([feed.id])
    expected = FeedStatistics(maintained_at=START, popularity=1.5, porn_rank=0.2)
    assert after.statistics == await storage.feed_statistics.get(feed.id) == expected


async def test_feeds_that_link_to_a_site_are_counted_once_each(
    storage: Storage,
) -> None:
    one, two, three = [(await Scene(storage).add_feed(name)).id for name in "abc"]
    await stand(storage, one, "", "x.example/", "x.example/blog/1", "x.example/blog/2")
    await stand(storage, two, "", "x.example/blog", "x.example/blogs", "y.example/")
    await stand(storage, three, "", "x.example/blog/3")

    async def linking(site: str, most: int = 9) -> int:
        return await storage.feed_statistics.linking(site, three, most)

    assert await linking("x.example") == 2
    assert await linking("x.example", 1) == 1
    assert await linking("x.example/blog") == 2
    assert await linking("x.example/blog/2") == 1
    assert await linking("x.example/b") == 0
    assert await linking("example") == 0

    await stand(storage, one, "", "x.example/")
    assert await linking("x.example/blog") == 1


async def test_feeds_of_one_site_are_related(storage: Storage) -> None:
    scene = Scene(storage)
    one, two, other = [(await scene.add_feed(name)).id for name in "abc"]
    secret = (await scene.add_feed("s", private=True)).id
    for feed_id in (one, two, secret):
        await stand(storage, feed_id, "x.example/blog")
    await stand(storage, other, "")
    nowhere = (await scene.add_feed("n")).id
    await stand(storage, nowhere, "")

    assert await storage.feed_statistics.related(one, 9) == [two]
    assert await storage.feed_statistics.related(secret, 9) == [one, two]
    assert await storage.feed_statistics.related(secret, 1) == [one]
    assert await storage.feed_statistics.related(other, 9) == []


async def test_the_public_feeds_of_a_site_are_found_by_it(storage: Storage) -> None:
    scene = Scene(storage)
    one, two, other, removed = [(await scene.add_feed(name)).id for name in "abcr"]
    secret = (await scene.add_feed("s", private=True)).id
    for feed_id in (one, two, removed, secret):
        await stand(storage, feed_id, "x.example/blog")
    await stand(storage, other, "")
    await storage.feeds.set_state(removed, FeedState.REMOVED, START)

    assert await storage.feed_statistics.of_site("x.example/blog", 9) == [one, two]
    assert await storage.feed_statistics.of_site("x.example/blog", 1) == [one]
    assert await storage.feed_statistics.of_site("x.example", 9) == []
    assert await storage.feed_statistics.of_site("", 9) == []


async def test_a_feed_that_was_removed_links_to_nothing(storage: Storage) -> None:
    one, two, three = [(await Scene(storage).add_feed(name)).id for name in "abc"]
    await stand(storage, one, "", "x.example/")
    await stand(storage, two, "", "x.example/")
    await storage.feeds.set_state(one, FeedState.REMOVED, START)

    assert await storage.feed_statistics.linking("x.example", three, 9) == 1


async def test_a_feed_that_was_removed_or_is_unlisted_is_related_to_none(
    storage: Storage,
) -> None:
    scene = Scene(storage)
    one, removed, unlisted = [await scene.add_feed(name) for name in "abc"]
    for feed in (one, removed, unlisted):
        await stand(storage, feed.id, "x.example")
    assert len(await storage.feed_statistics.related(one.id, 9)) == 2

    await storage.feeds.set_state(removed.id, FeedState.REMOVED, START)
    await storage.log.commit(fetch(unlisted, polling=Polling(unlisted=True), seen=b""))

    assert await storage.feed_statistics.related(one.id, 9) == []


async def test_a_purged_feed_leaves_neither_statistics_nor_links(
    storage: Storage,
) -> None:
    one, two = [(await Scene(storage).add_feed(name)).id for name in "ab"]
    await stand(storage, one, "x.example", "y.example/")
    held = await hold(storage, WorkKind.STATISTICS, one, now=ALL_IS_DUE)
    await storage.feeds.set_state(one, FeedState.REMOVED, START)
    await storage.feeds.purge_removed(START + DAY, 9)

    assert await storage.feed_statistics.get(one) is None
    assert await storage.feed_statistics.linking("y.example", two, 9) == 0
    late = standing(one, "x.example", "y.example/")
    await storage.feed_statistics.save([late], lease_id=held)
    assert await storage.feed_statistics.get(one) is None
    assert await storage.feed_statistics.linking("y.example", two, 9) == 0
