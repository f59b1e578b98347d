"""Which topics readers see, in what order, and how many."""

from __future__ import annotations

from storage.contract import Storage
from storage.records import FeedChange, FeedState
from tests.support.public_feeds import PublicFeeds
from tests.support.storage_scene import START

IS_MODELLED = False


async def urls(storage: Storage, text: str, limit: int) -> list[list[str]]:
    """Of each page."""
    pages, before = [], None
    while True:
        page = await storage.public.topics(text=text, before=before, limit=limit)
        pages.append([each.url.split(".")[0][8:] for each in page.feeds])
        if (before := page.next) is None:
            return pages


async def test_they_come_the_latest_first_without_what_is_not_to_be_listed(
    storage: Storage,
) -> None:
    feeds = PublicFeeds(storage)
    for name in ("aaa", "bbb", "secret", "gone", "ccc"):
        feed = await feeds.add(name, private=name == "secret")
        if name == "gone":
            await storage.feeds.set_state(feed.id, FeedState.REMOVED, START)
    assert await urls(storage, "", 2) == [["ccc", "bbb"], ["aaa"]]
    assert await urls(storage, "EXAMPLE/", 2) == [["ccc", "bbb"], ["aaa"]]
    assert await urls(storage, "bbb", 2) == [["bbb"]]
    assert await urls(storage, "secret", 2) == [[]]
    assert await urls(storage, "gone", 2) == [[]]


async def test_they_are_counted_as_they_come_go_and_come_back(storage: Storage) -> None:
    feeds, counts = PublicFeeds(storage), []
    feed = await feeds.add("aaa")
    await feeds.add("secret", private=True)
    for state in (FeedState.ACTIVE, FeedState.REMOVED, FeedState.ACTIVE):
        await storage.feeds.set_state(feed.id, state, START)
        counts.append(await storage.public.count())
    await storage.feeds.edit(feed.id, FeedChange(private=True), "", START)
    counts.append(await storage.public.count())
    assert counts == [1, 0, 1, 0]
