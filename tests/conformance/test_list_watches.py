"""Lists of feeds that are watched, on every engine."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from storage.errors import NotFound
from storage.records import (
    FeedId,
    ListWatch,
    ListWatchId,
    NewListWatch,
    Validators,
    WatchedFate,
    WatchedFeed,
)
from tests.support.storage_scene import START, Scene, at

LIST = "https://list.example/feeds.opml"
UNKNOWN = ListWatchId(99)


async def watch(scene: Scene, url: str = LIST) -> ListWatch:
    added, _is_new = await scene.storage.list_watches.add(NewListWatch(url=url), START)
    return added


def a_feed(name: str, **more: object) -> WatchedFeed:
    feed = WatchedFeed(
        url=f"https://{name}.example/feed", category="", fate=WatchedFate.KNOWN
    )
    return replace(feed, **more)


async def test_a_list_is_watched_once_and_due_at_once(scene: Scene) -> None:
    store = scene.storage.list_watches
    new = NewListWatch(url=LIST, category="news", private=True)

    added, is_new = await store.add(new, START)
    again, is_new_again = await store.add(NewListWatch(url=LIST), at(60))

    assert (is_new, is_new_again) == (True, False)
    assert added == again == await store.get(added.id)
    assert (added.category, added.private, added.due) == ("news", True, START)
    assert await store.due(START, 10) == [added]
    assert await store.due(at(-1), 10) == []
    assert await store.get(UNKNOWN) is None


async def test_what_came_of_it_is_kept(scene: Scene) -> None:
    store = scene.storage.list_watches
    first, second = await watch(scene), await watch(scene, f"{LIST}?2")
    read = replace(
        first,
        due=at(3_600),
        read_at=at(5),
        changed_at=at(5),
        error="half of it is missing",
        failures=2,
        validators=Validators(url=LIST, etag='"1"'),
        is_doubted=True,
        feeds=7,
        refused=1,
        added=4,
        removed=2,
        kept=3,
    )

    await store.save(read)
    await store.save(replace(read, id=UNKNOWN))

    assert await store.page(after=ListWatchId(0), limit=10) == [read, second]
    assert await store.page(after=first.id, limit=10) == [second]
    assert await store.due(at(3_600), 10) == [second, read]
    assert await store.due(at(3_600), 1) == [second]


async def test_feeds_of_a_list_are_known_by_their_resource(scene: Scene) -> None:
    store, listed = scene.storage.list_watches, await watch(scene)
    feeds = [a_feed(name, feed_id=FeedId(1)) for name in "abcde"]

    await store.put_feeds(listed.id, feeds)
    changed = a_feed("A", fate=WatchedFate.ADDED, category="news")
    await store.put_feeds(listed.id, [changed])
    await store.drop_feeds(listed.id, [feeds[4].url, "https://unknown.example/"])

    found: list[WatchedFeed] = []
    while page := await store.feeds(
        listed.id, after=found[-1].url if found else "", limit=3
    ):
        found += page
    assert sorted(found, key=lambda each: each.url) == [changed, *feeds[1:4]]


async def test_all_lists_that_have_a_feed_are_found(scene: Scene) -> None:
    store = scene.storage.list_watches
    first, second = await watch(scene), await watch(scene, f"{LIST}?2")
    own, other = a_feed("a", feed_id=FeedId(7)), a_feed("b", feed_id=FeedId(8))

    await store.put_feeds(second.id, [own])
    await store.put_feeds(first.id, [own, other, a_feed("c")])

    assert await store.holders(FeedId(7)) == [(first.id, own), (second.id, own)]
    assert await store.holders(FeedId(9)) == []


async def test_a_list_that_is_no_longer_watched_keeps_nothing(scene: Scene) -> None:
    store = scene.storage.list_watches
    first, second = await watch(scene), await watch(scene, f"{LIST}?2")
    for each in (first, second):
        await store.put_feeds(each.id, [a_feed("a", feed_id=FeedId(7))])

    await store.remove(first.id)
    await store.put_feeds(first.id, [a_feed("b")])

    assert await store.get(first.id) is None
    assert await store.feeds(first.id, after="", limit=10) == []
    assert [watch_id for watch_id, _ in await store.holders(FeedId(7))] == [second.id]
    with pytest.raises(NotFound, match="watched list"):
        await store.remove(first.id)
