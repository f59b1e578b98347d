"""Entries newest first, on every engine."""

from __future__ import annotations

from datetime import datetime

import pytest
from msgspec.structs import replace

from protocols.model import Feed
from storage.packing import pack
from storage.records import EntryPlace, FeedId, StoredFeed
from tests.support.documents import an_entry
from tests.support.storage_scene import (
    NO_FEED,
    START,
    Scene,
    at,
    fetch,
    record,
    stored_at,
    written,
)


async def publish(scene: Scene, feed: StoredFeed, **dates: datetime) -> None:
    entries = tuple(an_entry(key, published=date) for key, date in dates.items())
    commit = fetch(feed, when=at(1_000), entries=entries, records=(record(*dates),))
    assert await stored_at(scene.storage.log.commit(commit))


@pytest.fixture
async def feeds(scene: Scene) -> list[FeedId]:
    """Two of them, with entries by turns; ``c`` and ``d`` are of the same moment."""
    first, second = await scene.add_feed("a"), await scene.add_feed("b")
    await publish(scene, first, a=at(50), c=at(30), d=at(30), f=at(10))
    await publish(scene, second, b=at(40), e=at(20))
    return [first.id, second.id]


async def keys(scene: Scene, feeds: list[FeedId], **bounds: object) -> str:
    page = {"limit": 50, **bounds}
    found = await scene.storage.entries.newest(feeds, **page)
    return "".join(entry.key for entry in found)


async def place(scene: Scene, feeds: list[FeedId], key: str) -> EntryPlace:
    found = await scene.storage.entries.place(feeds, [key])
    assert found is not None
    return found


async def test_entries_of_several_feeds_are_merged_newest_first(
    scene: Scene, feeds: list[FeedId]
) -> None:
    assert await keys(scene, feeds) == "abcdef"
    assert await keys(scene, feeds[:1]) == "acdf"
    assert await keys(scene, feeds, limit=3) == "abc"
    assert await keys(scene, [NO_FEED]) == ""
    assert await keys(scene, []) == ""


@pytest.mark.parametrize(
    ("key", "older", "newer"),
    [("a", "bcdef", ""), ("c", "def", "ab"), ("d", "ef", "abc"), ("f", "", "abcde")],
)
async def test_a_page_begins_beside_an_entry_which_is_left_out(
    scene: Scene, feeds: list[FeedId], key: str, older: str, newer: str
) -> None:
    beside = await place(scene, feeds, key)

    assert await keys(scene, feeds, before=beside) == older
    assert await keys(scene, feeds, after=beside) == newer


async def test_what_lies_between_two_entries_is_a_page_as_well(
    scene: Scene, feeds: list[FeedId]
) -> None:
    newer, older = await place(scene, feeds, "b"), await place(scene, feeds, "e")

    assert await keys(scene, feeds, before=newer, after=older) == "cd"
    assert await keys(scene, feeds, before=newer, after=older, limit=1) == "c"
    assert await keys(scene, feeds, before=older, after=newer) == ""


async def test_a_deleted_entry_is_no_more_shown_but_keeps_its_place(
    scene: Scene, feeds: list[FeedId]
) -> None:
    (source,) = await scene.storage.entries.sources(feeds[:1])
    await scene.storage.log.commit(fetch(source.feed, **written("c", is_deletion=True)))

    assert await keys(scene, feeds) == "abdef"
    beside = await place(scene, feeds, "c")
    assert await keys(scene, feeds, before=beside) == "def"


async def test_a_place_is_found_by_any_of_several_keys_and_by_id(
    scene: Scene, feeds: list[FeedId]
) -> None:
    found = await scene.storage.entries.place(feeds, ["unknown", "e"])

    assert found is not None
    assert found.at == at(20)
    assert await scene.storage.entries.place_of(found.id) == found
    assert await scene.storage.entries.place(feeds[:1], ["e"]) is None
    assert await scene.storage.entries.place_of(999) is None


async def test_sources_are_feeds_with_the_heads_of_their_documents(
    scene: Scene,
) -> None:
    feed, bare = await scene.add_feed("a"), await scene.add_feed("b")
    await scene.storage.log.commit(fetch(feed, head=Feed(title="head")))

    first, second = await scene.storage.entries.sources([bare.id, NO_FEED, feed.id])

    assert (first.feed.url, first.head) == (bare.url, None)
    assert (second.feed.url, second.head) == (feed.url, pack(Feed(title="head")))


async def test_whether_an_account_holds_a_subscription_to_a_feed(scene: Scene) -> None:
    feed, other = await scene.add_feed("a"), await scene.add_feed("b")
    subscription = await scene.subscribe(feed)
    subscriptions = scene.storage.subscriptions

    assert await subscriptions.holds(subscription.account, feed.id)
    assert not await subscriptions.holds(subscription.account, other.id)
    assert not await subscriptions.holds(subscription.account + 1, feed.id)

    await subscriptions.end(subscription.id, "over", START, tell=False)
    assert not await subscriptions.holds(subscription.account, feed.id)


async def test_unlisted_entries_and_feeds_can_be_left_out(
    scene: Scene, feeds: list[FeedId]
) -> None:
    sources = await scene.storage.entries.sources(feeds)
    first, second = (each.feed for each in sources)
    hidden = an_entry("d", unlisted=True)
    await scene.storage.log.commit(fetch(first, entries=(hidden,)))
    assert await keys(scene, feeds) == "abcdef"
    assert await keys(scene, feeds, listed_only=True) == "abcef"
    assert await keys(scene, feeds, listed_only=True, limit=4) == "abce"

    polling = replace(second.polling, unlisted=True)
    listed = an_entry("g", published=at(5))
    await scene.storage.log.commit(fetch(second, polling=polling, entries=(listed,)))
    assert await keys(scene, feeds) == "abcdefg"
    assert await keys(scene, feeds, listed_only=True) == "acf"
