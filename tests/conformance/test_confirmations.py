"""What a callback confirmed takes effect, and its request is done, at once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from storage.contract import (
    ControlStore,
    FeedStore,
    Storage,
    SubscriptionStore,
    VerificationStore,
)
from storage.errors import NotFound
from storage.records import (
    ANONYMOUS,
    BEFORE_ALL,
    ControlEvent,
    FeedId,
    FeedState,
    Format,
    NewFeed,
    NewSubscription,
    NewVerification,
    SubscriptionsEnded,
    SubscriptionState,
    Verification,
    VerificationMode,
    VerificationState,
    VerificationTry,
    WorkKind,
)
from tests.support.work_claims import HOLD, hold

NOW = datetime(2026, 6, 2, tzinfo=UTC)
LATER = NOW + timedelta(days=9)
TOPIC = "https://feeds.example/1"
CONFIRMED = VerificationTry(at=NOW, status=200, excerpt="the challenge")


@dataclass
class Stores:
    storage: Storage
    control: ControlStore
    feeds: FeedStore
    subscriptions: SubscriptionStore
    verifications: VerificationStore

    async def add_feed(self) -> FeedId:
        feed, _ = await self.feeds.add(NewFeed(url=TOPIC), NOW)
        return feed.id

    async def request(
        self, number: int = 1, mode: VerificationMode = VerificationMode.SUBSCRIBE
    ) -> Verification:
        new = NewVerification(
            account=ANONYMOUS,
            mode=mode,
            topic=TOPIC,
            callback=callback(number),
            token=f"{mode} {number}",
            secret="the secret",
        )
        await self.verifications.add(new, NOW, most=9, most_of_host=9)
        due = await self.verifications.due(NOW, per_host=9, limit=9)
        found = next(each for each in due if each.callback == callback(number))
        await hold(self.storage, WorkKind.VERIFICATIONS, found.id, now=NOW)
        return found

    async def found(self, number: int = 1) -> Verification:
        found = await self.verifications.find(f"subscribe {number}")
        assert found is not None
        return found


def callback(number: int) -> str:
    return f"https://reader.example/{number}"


def wanted(feed_id: FeedId, number: int = 1, **changes: object) -> NewSubscription:
    new = NewSubscription(
        account=ANONYMOUS,
        topic=TOPIC,
        feed_id=feed_id,
        callback=callback(number),
        secret="the secret",
        format=Format.ATOM,
        lease_end=LATER,
    )
    return replace(new, **changes)  # type: ignore[arg-type]


@pytest.fixture
def stores(storage: Storage) -> Stores:
    return Stores(
        storage,
        storage.control,
        storage.feeds,
        storage.subscriptions,
        storage.verifications,
    )


async def test_a_confirmed_request_is_a_subscription_and_done(stores: Stores) -> None:
    feed_id = await stores.add_feed()
    asked = await stores.request()
    await stores.verifications.subscribe(
        asked.id, wanted(feed_id), CONFIRMED, kept_until=LATER, lease_id=HOLD
    )
    made = await stores.subscriptions.find(ANONYMOUS, TOPIC, callback(1))
    assert made is not None
    assert (made.state, made.secret) == (SubscriptionState.ACTIVE, "the secret")
    assert (made.format, made.lease_end) == (Format.ATOM, LATER)
    assert await stores.subscriptions.count(feed_id) == 1
    done = await stores.found()
    assert (done.state, done.attempts, done.due) == (
        VerificationState.VERIFIED,
        1,
        None,
    )
    assert (done.secret, done.last) == ("", CONFIRMED)
    assert await stores.verifications.trim(LATER, 9) == 0


async def test_many_confirmed_at_once_are_all_subscribed(stores: Stores) -> None:
    feed_id = await stores.add_feed()
    requests = [await stores.request(number) for number in range(5)]
    await asyncio.gather(
        *(
            stores.verifications.subscribe(
                each.id,
                wanted(feed_id, number),
                CONFIRMED,
                kept_until=LATER,
                lease_id=HOLD,
            )
            for number, each in enumerate(requests)
        )
    )
    assert await stores.subscriptions.count(feed_id) == 5
    assert await stores.verifications.next_due() is None


async def test_a_renewal_keeps_the_subscription_whatever_its_spelling(
    stores: Stores,
) -> None:
    feed_id = await stores.add_feed()
    before = await stores.subscriptions.add(wanted(feed_id), NOW)
    asked = await stores.request()
    spelled = "https://FEEDS.example/%31"
    renewed = wanted(feed_id, topic=spelled, secret="")
    await stores.verifications.subscribe(
        asked.id, renewed, CONFIRMED, kept_until=LATER, lease_id=HOLD
    )
    after = await stores.subscriptions.get(before.id)
    assert after is not None
    assert (after.topic, after.secret) == (spelled, "")
    assert await stores.subscriptions.count(feed_id) == 1


async def test_what_was_replaced_while_it_was_asked_is_confirmed_all_the_same(
    stores: Stores,
) -> None:
    feed_id = await stores.add_feed()
    asked = await stores.request()
    again = NewVerification(
        account=ANONYMOUS,
        mode=VerificationMode.SUBSCRIBE,
        topic=TOPIC,
        callback=callback(1),
        token="again",
    )
    await stores.verifications.add(again, NOW, most=9, most_of_host=9)
    assert await stores.verifications.due(NOW, per_host=9, limit=9) == []
    await stores.verifications.subscribe(
        asked.id, wanted(feed_id), CONFIRMED, kept_until=LATER, lease_id=HOLD
    )
    assert (await stores.found()).state is VerificationState.VERIFIED
    assert await stores.subscriptions.count(feed_id) == 1
    (pending,) = await stores.verifications.due(NOW, per_host=9, limit=9)
    assert pending.id != asked.id


@pytest.mark.parametrize("is_removed", [True, False])
async def test_without_its_feed_nothing_is_subscribed_and_the_request_stays(
    stores: Stores, is_removed: bool
) -> None:
    feed_id = await stores.add_feed()
    asked = await stores.request()
    if is_removed:
        await stores.feeds.set_state(feed_id, FeedState.REMOVED, NOW)
    else:
        feed_id = FeedId(99)
    with pytest.raises(NotFound):
        await stores.verifications.subscribe(
            asked.id, wanted(feed_id), CONFIRMED, kept_until=LATER, lease_id=HOLD
        )
    assert await stores.subscriptions.count(feed_id) == 0
    assert (await stores.found()).state is VerificationState.PENDING


async def test_a_confirmed_unsubscription_ends_it_untold(stores: Stores) -> None:
    feed_id = await stores.add_feed()
    subscribed = await stores.subscriptions.add(wanted(feed_id), NOW)
    asked = await stores.request(mode=VerificationMode.UNSUBSCRIBE)
    told: list[ControlEvent] = []
    with stores.control.watch(told.append):
        await stores.verifications.unsubscribe(
            asked.id, subscribed.id, CONFIRMED, kept_until=LATER, lease_id=HOLD
        )
    assert told == [SubscriptionsEnded((subscribed.id,), BEFORE_ALL)]
    ended = await stores.subscriptions.get(subscribed.id)
    assert ended is not None
    assert (ended.state, ended.ended_reason) == (
        SubscriptionState.ENDED,
        "unsubscribed",
    )
    done = await stores.verifications.find("unsubscribe 1")
    assert done is not None
    assert done.state is VerificationState.VERIFIED
