"""Which topics readers see, in what order, and how many."""

from __future__ import annotations

from datetime import timedelta

from storage.contract import Storage
from storage.records import FeedChange, FeedId, FeedState
from tests.support.documents import an_entry
from tests.support.public_feeds import PublicFeeds, names_by_page
from tests.support.storage_scene import START

IS_MODELLED = False


async def test_topics_come_the_latest_first_without_what_is_not_to_be_listed(
    storage: Storage,
) -> None:
    feeds = PublicFeeds(storage)
    for name in ("aaa", "bbb", "secret", "gone", "ccc"):
        feed = await feeds.add(name, private=name == "secret")
        if name == "gone":
            await storage.feeds.set_state(feed.id, FeedState.REMOVED, START)
    assert await names_by_page(storage, "", 2) == [["ccc", "bbb"], ["aaa"]]
    assert await names_by_page(storage, "EXAMPLE/", 2) == [["ccc", "bbb"], ["aaa"]]
    assert await names_by_page(storage, "bbb", 2) == [["bbb"]]
    assert await names_by_page(storage, "secret", 2) == [[]]
    assert await names_by_page(storage, "gone", 2) == [[]]


async def test_topics_are_counted_as_they_come_go_and_come_back(
    storage: Storage,
) -> None:
    feeds, counts = PublicFeeds(storage), []
    feed = await feeds.add("aaa")
    await feeds.add("secret", private=True)
    for state in (FeedState.ACTIVE, FeedState.REMOVED, FeedState.ACTIVE):
        await storage.feeds.set_state(feed.id, state, START)
        counts.append(await storage.public.count())
    await storage.feeds.edit(feed.id, FeedChange(private=True), "", START)
    counts.append(await storage.public.count())
    assert counts == [1, 0, 1, 0]


async def test_a_feed_that_is_private_or_removed_is_not_listed(
    storage: Storage,
) -> None:
    feeds = PublicFeeds(storage)
    first = await feeds.add("aaa")
    secret = await feeds.add("secret", private=True)
    second = await feeds.add("bbb")

    page = await storage.public.feeds(after=FeedId(0), limit=1)
    assert [each.id for each in page] == [first.id]
    page = await storage.public.feeds(after=first.id, limit=9)
    assert [each.id for each in page] == [second.id]
    assert await storage.public.feed(secret.id) is None
    found = await storage.public.feed(second.id)
    assert found is not None
    assert found.url == "https://bbb.example/feed"


async def test_a_topic_s_entries_come_newest_first_page_by_page(
    storage: Storage,
) -> None:
    feeds = PublicFeeds(storage)
    feed = await feeds.add()
    days = [START - timedelta(days=number) for number in range(4)]
    await feeds.publish(
        feed, *(an_entry(f"{day.day}", published=day) for day in reversed(days))
    )
    await feeds.withdraw(feed, f"{days[2].day}")

    first = await storage.public.entries(feed.id, before=None, limit=2)
    last = first[-1]
    rest = await storage.public.entries(
        feed.id, before=(last.dated, last.entry.id), limit=2
    )

    assert [each.dated for each in first + rest] == [days[0], days[1], days[3]]
