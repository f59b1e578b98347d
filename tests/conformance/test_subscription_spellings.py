from __future__ import annotations

from datetime import UTC, datetime

import pytest

from storage.contract import FeedStore, Storage, SubscriptionStore
from storage.records import (
    ANONYMOUS,
    OPERATOR,
    AccountId,
    FeedState,
    NewFeed,
    NewSubscription,
    Subscription,
    SubscriptionId,
)

NOW = datetime(2026, 6, 2, tzinfo=UTC)
TOPIC, OTHER_TOPIC = "https://feeds.example/~me", "https://FEEDS.example:443/%7Eme"
CALLBACK, OTHER_CALLBACK = "https://r.example/?a=%7E", "https://r.example/?a=~"

Stores = tuple[FeedStore, SubscriptionStore]


@pytest.fixture
def stores(storage: Storage) -> Stores:
    return storage.feeds, storage.subscriptions


async def subscribe(
    stores: Stores, topic: str, callback: str, account: AccountId = ANONYMOUS
) -> Subscription:
    feeds, subscriptions = stores
    feed, _ = await feeds.add(NewFeed(url=TOPIC), NOW)
    new = NewSubscription(
        account=account, topic=topic, feed_id=feed.id, callback=callback
    )
    return await subscriptions.add(new, NOW)


@pytest.mark.parametrize(
    ("topic", "callback"),
    [
        (TOPIC, OTHER_CALLBACK),
        (OTHER_TOPIC, CALLBACK),
        (OTHER_TOPIC, OTHER_CALLBACK),
    ],
)
async def test_another_spelling_is_the_same_subscription_spelled_anew(
    stores: Stores, topic: str, callback: str
) -> None:
    first = await subscribe(stores, TOPIC, CALLBACK)
    again = await subscribe(stores, topic, callback)
    assert again.id == first.id
    assert (again.topic, again.callback) == (topic, callback)
    back = await subscribe(stores, TOPIC, CALLBACK)
    assert (back.id, back.topic, back.callback) == (first.id, TOPIC, CALLBACK)


async def test_a_subscription_is_found_under_any_spelling(stores: Stores) -> None:
    made = await subscribe(stores, OTHER_TOPIC, OTHER_CALLBACK)
    _, subscriptions = stores
    found = await subscriptions.find(ANONYMOUS, TOPIC, CALLBACK)
    assert found == made
    for topic, callback in ((TOPIC, None), (OTHER_TOPIC, None), (None, CALLBACK)):
        page = await subscriptions.page(
            after=SubscriptionId(0), limit=9, topic=topic, callback=callback
        )
        assert page == [made]


async def test_another_account_has_its_own_subscription(stores: Stores) -> None:
    ours = await subscribe(stores, TOPIC, CALLBACK, OPERATOR)
    theirs = await subscribe(stores, OTHER_TOPIC, OTHER_CALLBACK)
    assert ours.id != theirs.id
    assert await stores[1].get(ours.id) == ours


async def test_a_removed_feed_returns_as_private_as_it_is_added(stores: Stores) -> None:
    feeds, _ = stores
    feed, _ = await feeds.add(NewFeed(url=TOPIC), NOW)
    await feeds.set_state(feed.id, FeedState.REMOVED, NOW)
    again, _ = await feeds.add(NewFeed(url=TOPIC, private=True), NOW)
    assert (again.id, again.private) == (feed.id, True)
