"""Replays, on every engine: from where a subscription catches up, and when not."""

from __future__ import annotations

from datetime import timedelta

import pytest

from storage.errors import NotFound, StorageBusy, SubscriptionPaused
from storage.records import BEFORE_ALL, Position, Retention, Subscription
from tests.support.storage_scene import START, Scene, at


async def served(scene: Scene) -> Subscription:
    """A subscription that has got records 1 to 4, one of which is another feed's."""
    feed, other = await scene.add_feed("a"), await scene.add_feed("b")
    subscription = await scene.subscribe(feed)
    for number, each in enumerate((feed, feed, other, feed)):
        await scene.publish(each, str(number), when=at(number))
    assert await scene.deliver(at(4)) == [1, 2, 4]
    return subscription


async def test_what_was_delivered_is_owed_once_more_from_there_on(scene: Scene) -> None:
    subscription = await served(scene)
    deliveries = scene.storage.deliveries
    await deliveries.replay(subscription.id, Position(1), at(9))
    (claimed,) = await scene.claim_retrying(at(9))
    assert (claimed.position, claimed.skip_to, claimed.attempts) == (1, None, 0)
    assert (await deliveries.lag(subscription.id, 9)).records == 2


async def test_an_open_retry_is_set_back_and_never_forward(scene: Scene) -> None:
    subscription = await scene.subscribe_retrying(await scene.add_feed())
    for after in (0, 7):
        await scene.storage.deliveries.replay(subscription.id, Position(after), at(1))
        retrying = await scene.storage.deliveries.retrying_subscription(subscription.id)
        assert retrying is not None
        assert (retrying.position, retrying.attempts) == (0, 0)
        assert retrying.next_try == at(1)


async def test_a_replay_begins_with_what_the_log_still_has(scene: Scene) -> None:
    subscription = await served(scene)
    nothing = Retention(soft_age=0, soft_count=0, hard_age=0, hard_count=0)
    await scene.storage.log.trim(nothing, at(9), 2)
    await scene.storage.deliveries.replay(subscription.id, BEFORE_ALL, at(9))
    (claimed,) = await scene.claim_retrying(at(9))
    assert claimed.position == 2


async def test_one_that_is_sent_something_waits_for_that(scene: Scene) -> None:
    feed = await scene.add_feed()
    subscription = await scene.subscribe(feed)
    await scene.publish(feed, "k")
    (chunk,) = await scene.claim()
    deliveries = scene.storage.deliveries
    with pytest.raises(StorageBusy):
        await deliveries.replay(subscription.id, BEFORE_ALL, START)
    await scene.fail(chunk, subscription)
    await scene.claim_retrying(at(9))
    with pytest.raises(StorageBusy):
        await deliveries.replay(subscription.id, BEFORE_ALL, START)


async def test_one_that_is_paused_or_has_ended_is_sent_nothing(scene: Scene) -> None:
    subscription = await served(scene)
    await scene.storage.subscriptions.pause(subscription.id, START)
    with pytest.raises(SubscriptionPaused):
        await scene.storage.deliveries.replay(subscription.id, BEFORE_ALL, START)
    await scene.storage.subscriptions.end(subscription.id, "", START, tell=False)
    with pytest.raises(NotFound):
        await scene.storage.deliveries.replay(subscription.id, BEFORE_ALL, START)


async def test_the_last_record_of_a_feed_before_a_moment(scene: Scene) -> None:
    subscription = await served(scene)
    for seconds, expected in ((0, 0), (1, 1), (1.5, 2), (3, 2), (9, 4)):
        moment = START + timedelta(seconds=seconds)
        last = await scene.storage.log.last_before(subscription.feed_id, moment)
        assert last == expected, seconds
