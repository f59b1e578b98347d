"""Which of an account's subscriptions a search lists, and how many there are."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from storage.records import (
    ANONYMOUS,
    OPERATOR,
    Bound,
    BoundComparison,
    FeedStatistics,
    FeedStatisticsWrite,
    Format,
    ListingSearch,
    NewSubscription,
    Polling,
    SubscriptionId,
)
from tests.support.storage_scene import START, Scene, fetch
from tests.support.work_claims import save_statistics

IS_MODELLED = False


async def add_named(scene: Scene, *names: str) -> None:
    feed = await scene.add_feed()
    for number, name in enumerate(names):
        new = NewSubscription(
            account=OPERATOR,
            topic=f"http://a.example/{name}",
            feed_id=feed.id,
            callback=f"http://CB.example/{number}/{name}",
        )
        await scene.storage.subscriptions.add(new, START)


async def count_found(scene: Scene, **search: str) -> int:
    listing = await scene.storage.listings.page(
        OPERATOR, ListingSearch(**search), skip=0, limit=9
    )
    assert len(listing.items) == listing.total
    return listing.total


async def test_parts_are_found_in_either_case(scene: Scene) -> None:
    await add_named(scene, "News", "sport", "é日本語news")

    assert await count_found(scene, topic_contains="NEWS") == 2
    assert await count_found(scene, topic_contains="newssport") == 0
    assert await count_found(scene, callback_contains="cb.EXAMPLE/1/") == 1
    assert await count_found(scene, callback_like="%example/_/sport") == 1
    assert await count_found(scene, callback_like="http://cb%") == 3
    assert await count_found(scene, callback_like="nothing%") == 0


async def test_parts_without_three_letters_side_by_side_are_found(scene: Scene) -> None:
    await add_named(scene, "News", "sport", "é日本語news", '%_"')

    assert await count_found(scene, topic_contains="日本語") == 1
    assert await count_found(scene, topic_contains="ew") == 2
    assert await count_found(scene, topic_contains='%_"') == 1
    assert await count_found(scene, callback_contains="/3/") == 1


async def test_what_the_open_hub_has_is_not_listed(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed)
    listing = await scene.storage.listings.page(
        ANONYMOUS, ListingSearch(), skip=0, limit=10
    )
    assert (listing.items, listing.total) == ((), 0)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://A.example", "a.example"),
        ("https://a.example:8080/x", "a.example"),
        ("https://a.example?x=/y", "a.example"),
        ("https://a.example#x", "a.example"),
        ("http://[2001:db8::1]:80/x", "[2001:db8::1]"),
    ],
)
async def test_hosts_are_told_from_what_is_around_them(
    scene: Scene, url: str, host: str
) -> None:
    feed = await scene.add_feed()
    new = NewSubscription(
        account=OPERATOR, topic=url, feed_id=feed.id, callback=f"{url}"
    )
    await scene.storage.subscriptions.add(new, START)
    for search in (ListingSearch(topic_host=host), ListingSearch(callback_host=host)):
        found = await scene.storage.listings.page(OPERATOR, search, skip=0, limit=9)
        assert [each.subscription.topic for each in found.items] == [url]


async def test_totals_follow_what_is_subscribed_changed_and_ended(scene: Scene) -> None:
    feed = await scene.add_feed()
    storage = scene.storage
    new = NewSubscription(
        account=OPERATOR,
        topic="http://a.example/",
        feed_id=feed.id,
        callback="http://cb.example/",
        format=Format.ATOM,
    )

    async def totals() -> tuple[int, ...]:
        searches = (
            ListingSearch(),
            ListingSearch(format=Format.ATOM),
            ListingSearch(format=Format.JSON),
            ListingSearch(topic_host="a.example"),
        )
        found = [
            await storage.listings.page(OPERATOR, each, skip=0, limit=9)
            for each in searches
        ]
        assert all(len(each.items) == each.total for each in found)
        return tuple(each.total for each in found)

    await storage.subscriptions.add(new, START)
    assert await totals() == (1, 1, 0, 1)
    await storage.subscriptions.add(replace(new, format=Format.JSON), START)
    assert await totals() == (1, 0, 1, 1)
    await storage.subscriptions.end(SubscriptionId(1), "enough", START, tell=True)
    assert await totals() == (0, 0, 0, 0)
    await storage.subscriptions.add(new, START)
    assert await totals() == (1, 1, 0, 1)
    await storage.subscriptions.end_all(feed.id, "enough", START, 10)
    assert await totals() == (0, 0, 0, 0)


async def test_numbers_of_its_feed_select_a_subscription(scene: Scene) -> None:
    storage = scene.storage
    busy, unknown = [await scene.add_feed(name) for name in ("busy", "unknown")]
    for feed in (busy, unknown):
        new = NewSubscription(
            account=OPERATOR,
            topic=feed.url,
            feed_id=feed.id,
            callback="http://cb.example/",
        )
        await storage.subscriptions.add(new, START)
    polling = Polling(code=200, velocity=3.5, bozo_rank=0.25)
    await storage.log.commit(fetch(busy, polling=polling))
    known = FeedStatistics(maintained_at=START, popularity=1.5, porn_rank=0.5)
    await save_statistics(
        storage,
        FeedStatisticsWrite(
            feed_id=busy.id, statistics=known, site="", places=frozenset(), due=START
        ),
    )

    async def selected(**bounds: tuple[str, float]) -> set[str]:
        search = ListingSearch(
            **{
                name: Bound(BoundComparison(comparison), number)
                for name, (comparison, number) in bounds.items()
            }
        )
        found = await storage.listings.page(OPERATOR, search, skip=0, limit=9)
        assert len(found.items) == found.total
        return {each.feed.url.split(".")[0][8:] for each in found.items}

    assert await selected(velocity=(">", 3)) == {"busy"}
    assert await selected(velocity=("<", 3)) == {"unknown"}
    assert await selected(bozo_rank=("=", 0.25)) == {"busy"}
    assert await selected(popularity=(">=", 1.5), porn_rank=("<=", 0.5)) == {"busy"}
    assert await selected(popularity=("<=", 1.5)) == {"busy", "unknown"}
