"""Replays, on every engine: from where a subscription catches up, and when not."""

from __future__ import annotations

from datetime import timedelta

import pytest

from storage.errors import NotFound, StorageBusy, SubscriptionPaused
from storage.records import (
    BEFORE_ALL,
    NewDeadLetter,
    Position,
    Retention,
    RetryingSubscription,
    RetryMoved,
    Subscription,
    SubscriptionCondition,
    SubscriptionHealth,
)
from tests.support.storage_scene import NODE, START, Scene, at


async def served(scene: Scene) -> Subscription:
    """A subscription that has got records 1 to 4, one of which is another feed's."""
    feed, other = await scene.add_feed("a"), await scene.add_feed("b")
    subscription = await scene.subscribe(feed)
    for number, each in enumerate((feed, feed, other, feed)):
        await scene.publish(each, str(number), when=at(number))
    assert await scene.deliver(at(4)) == [1, 2, 4]
    return subscription


def sent_again_to(retrying: RetryingSubscription) -> Position | None:
    """Up to where its records are sent again; what is above is new to it."""
    assert retrying.skip_after == retrying.skip_to, "it skips nothing"
    return retrying.skip_after


async def row_of(scene: Scene, subscription: Subscription) -> RetryingSubscription:
    row = await scene.storage.deliveries.retrying_subscription(subscription.id)
    assert row is not None
    return row


async def condition_of(
    scene: Scene, subscription: Subscription
) -> SubscriptionCondition:
    (found,) = await scene.storage.subscription_selections.conditions([subscription.id])
    return found


async def move(
    scene: Scene, subscription: Subscription, to: int, when: float, **more: object
) -> None:
    """What came of a request for the records up to there: accepted, unless told."""
    (claimed,) = await scene.claim_retrying(at(when))
    accepted = {"attempts": 0, "next_try": at(when + 60), "last_status": 200}
    moved = RetryMoved(
        subscription_id=subscription.id,
        lease_id=claimed.lease_id,
        position=Position(to),
        **{**accepted, "release": True, "due": at(when), **more},
    )
    assert not (await scene.flush(when=at(when), moved=(moved,))).lost


async def test_what_was_delivered_is_owed_once_more_from_there_on(scene: Scene) -> None:
    subscription = await served(scene)
    deliveries = scene.storage.deliveries
    await deliveries.replay(subscription.id, Position(1), at(9))
    (claimed,) = await scene.claim_retrying(at(9))
    assert (claimed.position, claimed.attempts) == (1, 0)
    assert sent_again_to(claimed) == 4
    assert (await deliveries.lag(subscription.id, 9)).records == 2


async def test_an_open_retry_is_set_back_and_never_forward(scene: Scene) -> None:
    subscription = await scene.subscribe_retrying(await scene.add_feed())
    for after in (0, 7):
        await scene.storage.deliveries.replay(subscription.id, Position(after), at(1))
        retrying = await scene.storage.deliveries.retrying_subscription(subscription.id)
        assert retrying is not None
        assert (retrying.position, retrying.attempts) == (0, 0)
        assert retrying.next_try == at(1)
        assert sent_again_to(retrying) == 0, "nothing: it was not sent before"


async def test_a_retry_that_had_come_further_sends_again_up_to_there(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    for _ in range(2):
        await scene.publish(feed)
    await move(scene, late, 2, 10)
    await scene.storage.deliveries.replay(late.id, BEFORE_ALL, at(11))
    row = await row_of(scene, late)
    assert (row.position, sent_again_to(row)) == (0, 2)


@pytest.mark.parametrize(
    ("reached", "after", "position", "last"),
    [(2, 0, 0, 4), (2, 3, 2, 4), (6, 1, 1, 6)],
)
async def test_of_two_replays_at_once_all_is_sent_again_that_either_would(
    scene: Scene, reached: int, after: int, position: int, last: int
) -> None:
    subscription = await served(scene)
    deliveries = scene.storage.deliveries
    await deliveries.replay(subscription.id, Position(1), at(9))
    feed = await scene.storage.feeds.get(subscription.feed_id)
    assert feed is not None
    for _ in range(3):
        await scene.publish(feed)
    await move(scene, subscription, reached, 10)
    await deliveries.replay(subscription.id, Position(after), at(11))
    row = await row_of(scene, subscription)
    assert (row.position, sent_again_to(row)) == (position, last)


async def test_a_hub_that_was_killed_knows_what_is_to_be_sent_again(
    scene: Scene,
) -> None:
    subscription = await served(scene)
    await scene.storage.deliveries.replay(subscription.id, BEFORE_ALL, at(9))
    await move(scene, subscription, 1, 10, release=False, due=at(70))
    well = await condition_of(scene, subscription)
    await scene.storage.membership.join(NODE)
    (claimed,) = await scene.claim_retrying(at(11))
    assert (claimed.position, sent_again_to(claimed)) == (1, 4)
    assert claimed.next_try <= at(11), "it is not ahead of a schedule"
    assert await condition_of(scene, subscription) == well


async def test_who_was_well_stays_so_all_the_while(scene: Scene) -> None:
    subscription = await served(scene)
    feed = await scene.storage.feeds.get(subscription.feed_id)
    assert feed is not None
    before = await condition_of(scene, subscription)
    assert before.health is SubscriptionHealth.OK
    await scene.storage.deliveries.replay(subscription.id, BEFORE_ALL, at(9))
    assert await condition_of(scene, subscription) == before
    await move(scene, subscription, 2, 10)
    await scene.publish(feed)  # it is behind with that one, by the replay alone
    await move(scene, subscription, 4, 11)
    assert await condition_of(scene, subscription) == before
    await move(scene, subscription, 5, 12, finished=True)
    deliveries = scene.storage.deliveries
    assert await deliveries.retrying_subscription(subscription.id) is None
    assert await condition_of(scene, subscription) == before


async def test_who_fails_in_it_fails_and_then_catches_up(scene: Scene) -> None:
    subscription = await served(scene)
    await scene.storage.deliveries.replay(subscription.id, BEFORE_ALL, at(9))
    refused = {"attempts": 1, "last_status": 500, "last_error": "answered 500"}
    await move(scene, subscription, 0, 10, **refused, next_try=at(11), due=at(11))
    failing = await condition_of(scene, subscription)
    assert (failing.health, failing.since) == (SubscriptionHealth.FAILING, at(9))
    await move(scene, subscription, 1, 12)
    slow = await condition_of(scene, subscription)
    assert (slow.health, slow.since) == (SubscriptionHealth.SLOW, at(12))
    await move(scene, subscription, 4, 13, finished=True)
    well = await condition_of(scene, subscription)
    assert (well.health, well.since) == (SubscriptionHealth.OK, at(13))


async def test_who_failed_before_is_not_well_by_a_replay(scene: Scene) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())
    failing = await condition_of(scene, late)
    assert failing.health is SubscriptionHealth.FAILING
    await scene.storage.deliveries.replay(late.id, BEFORE_ALL, at(1))
    assert (await condition_of(scene, late)).health is SubscriptionHealth.SLOW


async def test_one_that_is_paused_in_it_goes_on_with_it_afterwards(
    scene: Scene,
) -> None:
    subscription = await served(scene)
    await scene.storage.deliveries.replay(subscription.id, BEFORE_ALL, at(9))
    await scene.storage.subscriptions.pause(subscription.id, at(10))
    assert await scene.claim_retrying(at(11)) == []
    await scene.storage.subscriptions.resume(subscription.id, at(12))
    (claimed,) = await scene.claim_retrying(at(12))
    assert (claimed.position, sent_again_to(claimed)) == (0, 4)


@pytest.mark.parametrize("reached", [0, 2, 4])
async def test_what_is_given_up_of_it_is_one_dead_letter_with_what_came_meanwhile(
    scene: Scene, reached: int
) -> None:
    subscription = await served(scene)
    feed = await scene.storage.feeds.get(subscription.feed_id)
    assert feed is not None
    await scene.storage.deliveries.replay(subscription.id, BEFORE_ALL, at(9))
    await scene.publish(feed)
    await move(scene, subscription, reached, 10)
    (claimed,) = await scene.claim_retrying(at(11))
    lost = NewDeadLetter(
        subscription_id=subscription.id,
        lease_id=claimed.lease_id,
        first=Position(reached + 1),
        last=Position(5),
        reason="answered 500",
        at=at(11),
    )
    await scene.flush(when=at(11), given_up=(lost,))
    [dead] = await scene.storage.deliveries.dead_letters(after=0, limit=9)
    assert (dead.first, dead.last) == (reached + 1, 5)
    await scene.deliver()
    await scene.storage.deliveries.retry_dead_letter(dead.id, at(12))
    row = await row_of(scene, subscription)
    assert (row.position, sent_again_to(row)) == (reached, 5)


async def test_a_dead_letter_right_before_it_is_sent_with_it(scene: Scene) -> None:
    subscription = await served(scene)
    deliveries = scene.storage.deliveries
    await deliveries.replay(subscription.id, BEFORE_ALL, at(9))
    (claimed,) = await scene.claim_retrying(at(9))
    lost = NewDeadLetter(
        subscription_id=subscription.id,
        lease_id=claimed.lease_id,
        first=Position(1),
        last=Position(1),
        reason="not kept",
        at=at(9),
        was_untried=True,
    )
    await scene.flush(when=at(9), given_up=(lost,))
    [dead] = await deliveries.dead_letters(after=0, limit=9)
    await deliveries.replay(subscription.id, Position(1), at(10))
    await deliveries.retry_dead_letter(dead.id, at(11))
    row = await row_of(scene, subscription)
    assert (row.position, sent_again_to(row)) == (0, 4)


async def test_what_the_log_loses_in_the_midst_of_it_is_missed(scene: Scene) -> None:
    subscription = await served(scene)
    await scene.storage.deliveries.replay(subscription.id, BEFORE_ALL, at(9))
    nothing = Retention(soft_age=0, soft_count=0, hard_age=0, hard_count=0)
    await scene.storage.log.trim(nothing, at(10), 2)
    row = await row_of(scene, subscription)
    assert (row.position, row.missed, sent_again_to(row)) == (2, (1, 2), 4)
    [dead] = await scene.storage.deliveries.dead_letters(after=0, limit=9)
    assert (dead.first, dead.last, dead.reason) == (1, 2, "trimmed")


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
