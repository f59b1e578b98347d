"""One feed however its URL is spelled, on every engine; apart by their credentials."""

from __future__ import annotations

import pytest

from storage.records import (
    OPERATOR,
    Credentials,
    FeedState,
    NewFeed,
    StoredFeed,
    Subscription,
)
from tests.support.storage_scene import START, Scene, at

URL = "http://host.example/feed?a=%7E"
OTHERS = (
    "HTTP://HOST.example/feed?a=%7E",
    "http://host.example:80/feed?a=%7E",
    "http://host.example/feed?a=%7E#part",
    "http://host.example/feed?a=~",
    "http://host.example/%66eed?a=%7e#",
)
OTHER = OTHERS[2]
ANN, BOB = Credentials(username="ann"), Credentials(headers={"X-Key": "bob"})


async def add(
    scene: Scene, url: str, credentials: Credentials | None = None
) -> StoredFeed:
    new = NewFeed(url=url, credentials=credentials, private=credentials is not None)
    feed, _ = await scene.storage.feeds.add(new, START)
    return feed


async def remove(scene: Scene, feed: StoredFeed) -> None:
    await scene.storage.feeds.set_state(feed.id, FeedState.REMOVED, at(1))


async def found(scene: Scene, url: str) -> StoredFeed:
    feed = await scene.storage.feeds.find(url)
    assert feed is not None
    return feed


@pytest.mark.parametrize("other", OTHERS)
async def test_another_spelling_is_the_same_feed(scene: Scene, other: str) -> None:
    feed = await add(scene, URL)

    again, is_new = await scene.storage.feeds.add(NewFeed(url=other), at(60))

    assert (again, is_new) == (feed, False)
    assert again.url == URL, "as it was spelled first"
    assert await scene.storage.feeds.find(other) == feed
    due = await scene.storage.feeds.due(at(60), after={}, limit=9)
    assert [each.id for each in due] == [feed.id]


@pytest.mark.parametrize(
    "other",
    [
        "https://host.example/feed?a=%7E",
        "http://host.example:8080/feed?a=%7E",
        "http://host.example/Feed?a=%7E",
        "http://host.example/feed",
    ],
)
async def test_another_resource_is_another_feed(scene: Scene, other: str) -> None:
    feed = await add(scene, URL)

    assert await scene.storage.feeds.find(other) is None
    assert (await add(scene, other)).id != feed.id


async def test_subscriptions_of_one_feed_keep_the_topic_as_each_spelled_it(
    scene: Scene,
) -> None:
    feed = await add(scene, URL)
    made: list[Subscription] = [
        await scene.subscribe(feed, f"s{number}", topic=topic)
        for number, topic in enumerate(OTHERS)
    ]
    await scene.publish(feed, "news")

    (chunk,) = await scene.claim()

    assert [each.topic for _, each in chunk.pending] == list(OTHERS)
    assert await scene.storage.subscriptions.count(feed.id) == len(made)


async def test_the_same_credentials_under_another_spelling_are_the_same_feed(
    scene: Scene,
) -> None:
    ann = await add(scene, URL, ANN)

    assert (await add(scene, OTHER, ANN)).id == ann.id


@pytest.mark.parametrize(("first", "second"), [(None, ANN), (ANN, None), (ANN, BOB)])
async def test_other_credentials_under_another_spelling_are_another_feed(
    scene: Scene, first: Credentials | None, second: Credentials | None
) -> None:
    one = await add(scene, URL, first)
    other = await add(scene, OTHER, second)

    assert one.id != other.id
    targets = await scene.storage.feeds.targets([one.id, other.id])
    assert [each.credentials for each in targets] == [first, second]
    assert (await found(scene, URL)).id == one.id
    assert (await found(scene, OTHER)).id == other.id


async def test_a_third_spelling_leads_to_the_feed_without_credentials(
    scene: Scene,
) -> None:
    await add(scene, URL, ANN)
    plain = await add(scene, OTHER)

    assert (await found(scene, OTHERS[0])).id == plain.id
    assert (await add(scene, OTHERS[0])).id == plain.id
    await remove(scene, plain)
    assert (await found(scene, OTHERS[0])).has_credentials


async def test_a_removed_feed_returns_under_any_spelling(scene: Scene) -> None:
    feed = await add(scene, URL)
    await remove(scene, feed)

    again = await add(scene, OTHER)

    assert (again.id, again.state) == (feed.id, FeedState.ACTIVE)


async def test_a_removed_feed_with_credentials_returns_with_them_only_as_it_was_spelled(
    scene: Scene,
) -> None:
    ann = await add(scene, URL, ANN)
    await remove(scene, ann)
    plain = await add(scene, OTHER)

    again = await add(scene, URL)

    assert plain.id != ann.id
    assert (again.id, again.has_credentials) == (ann.id, True)


async def test_purging_one_of_two_feeds_leaves_the_subscribers_of_the_other(
    scene: Scene,
) -> None:
    plain = await add(scene, URL)
    await scene.subscribe(plain, "early", topic=OTHER)
    ann = await add(scene, OTHER, ANN)
    kept = await scene.subscribe(ann, "late", topic=OTHER, account=OPERATOR)
    await remove(scene, plain)

    assert await scene.storage.feeds.purge_removed(at(2), 9) == 1

    assert await scene.storage.subscriptions.get(kept.id) == kept
    assert (await found(scene, URL)).id == ann.id
