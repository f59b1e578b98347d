"""Pausing, on every engine: nothing is claimed, everything is owed, in order."""

from __future__ import annotations

from datetime import datetime

import pytest

from storage.errors import NotFound, SubscriptionPaused
from storage.records import (
    WAS_PAUSED,
    ControlEvent,
    Format,
    NewDeadLetter,
    PauseChanged,
    Position,
    RecordKind,
    Retention,
    RetryingSubscription,
    RetryMoved,
    StoredFeed,
    Subscription,
    SubscriptionCondition,
    SubscriptionHealth,
    SubscriptionId,
    Updates,
)
from tests.support.storage_scene import (
    LEASE,
    NODE,
    Scene,
    all_of,
    at,
    new_subscription,
    outcome_of,
)

NOBODY = SubscriptionId(99)
PAUSED, RESUMED = at(1), at(9)


async def pause(scene: Scene, *paused: Subscription, when: datetime = PAUSED) -> None:
    for each in paused:
        assert await scene.storage.subscriptions.pause(each.id, when)


async def resume(scene: Scene, paused: Subscription, when: datetime = RESUMED) -> None:
    assert await scene.storage.subscriptions.resume(paused.id, when)


async def paused_one(scene: Scene, name: str = "s") -> tuple[StoredFeed, Subscription]:
    feed = await scene.add_feed()
    subscription = await scene.subscribe(feed, name)
    await pause(scene, subscription)
    return feed, subscription


async def condition(scene: Scene, whose: Subscription) -> SubscriptionCondition:
    [found] = await scene.storage.subscription_selections.conditions([whose.id])
    return found


async def retry_of(
    scene: Scene, subscription: Subscription
) -> RetryingSubscription | None:
    return await scene.storage.deliveries.retrying_subscription(subscription.id)


def moved(retrying: RetryingSubscription, position: int, **more: object) -> RetryMoved:
    outcome = {"attempts": 0, "next_try": at(60), "last_status": 200}
    return RetryMoved(
        subscription_id=retrying.subscription.id,
        lease_id=retrying.lease_id,
        position=Position(position),
        **{**outcome, **more},
    )


async def test_a_paused_one_is_claimed_for_nothing_until_it_is_resumed(
    scene: Scene,
) -> None:
    feed, paused = await paused_one(scene)
    other = await scene.subscribe(feed, "other")

    first = await scene.publish(feed, "a")
    (chunk,) = await scene.claim()
    assert [each.id for _, each in chunk.pending] == [other.id]
    await scene.flush(outcomes=all_of(chunk))
    await scene.publish(feed, "b")
    assert await scene.deliver(at(2)) == [first + 1]

    assert await scene.claim_retrying(at(1_000)) == []
    assert await scene.storage.deliveries.next_retry() is None
    assert (await scene.storage.backlog()).retrying == 1
    await resume(scene, paused)
    assert await scene.storage.deliveries.next_retry() == at(9)
    (claimed,) = await scene.claim_retrying(at(9))
    assert (claimed.subscription.id, claimed.position) == (paused.id, first - 1)
    assert (claimed.attempts, claimed.next_try, claimed.is_paused) == (0, at(9), False)


async def test_while_nothing_comes_nothing_is_owed(scene: Scene) -> None:
    feed, paused = await paused_one(scene)
    assert await retry_of(scene, paused) is None

    await resume(scene, paused)

    assert await scene.claim_retrying(at(9)) == []
    position = await scene.publish(feed, "a")
    assert await scene.deliver(at(9)) == [position]


async def test_it_is_owed_what_it_wants_only(scene: Scene) -> None:
    feed = await scene.add_feed()
    paused = await scene.subscribe(feed, updates=Updates.NONE)
    await pause(scene, paused)

    await scene.publish(feed, "a", kind=RecordKind.UPDATED)
    await scene.deliver(at(2))
    assert await retry_of(scene, paused) is None

    wanted = await scene.publish(feed, "b")
    await scene.deliver(at(2))
    owed = await retry_of(scene, paused)
    assert owed is not None
    assert (owed.position, owed.is_paused) == (wanted - 1, True)
    assert (owed.failing_since, owed.last_error) == (at(2), WAS_PAUSED)


async def test_who_came_after_a_record_is_not_owed_it_for_being_paused(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed, "early")
    await scene.publish(feed, "a")
    late = await scene.subscribe(feed, "late")
    await pause(scene, late)

    await scene.deliver(at(2))

    assert await retry_of(scene, late) is None


async def test_a_retry_is_paused_with_its_subscription(scene: Scene) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    await pause(scene, late)

    assert await scene.claim_retrying(at(1_000)) == []
    await scene.publish(feed, "news", when=at(100))
    await scene.deliver(at(100))  # which brings other retries forward
    assert await scene.claim_retrying(at(1_000)) == []

    await resume(scene, late, at(200))
    (claimed,) = await scene.claim_retrying(at(200))
    assert (claimed.position, claimed.attempts, claimed.next_try) == (0, 1, at(200))


async def test_what_is_under_way_ends_and_is_recorded(scene: Scene) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    await scene.publish(feed, "more")
    await scene.deliver(at(4))
    (claimed,) = await scene.claim_retrying(at(5))
    await pause(scene, late, when=at(6))

    written = await scene.flush(moved=(moved(claimed, 1, release=True, due=at(7)),))

    assert not written.lost
    held = await retry_of(scene, late)
    assert held is not None
    assert (held.position, held.lease_id, held.is_paused) == (1, 0, True)
    assert await scene.claim_retrying(at(1_000)) == []


async def test_a_resumed_one_whose_request_is_under_way_is_not_claimed_twice(
    scene: Scene,
) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())
    (claimed,) = await scene.claim_retrying(at(5))
    await pause(scene, late, when=at(6))

    await resume(scene, late, at(7))

    assert await scene.claim_retrying(at(8)) == []
    assert await scene.storage.deliveries.next_retry() == at(65)
    assert not (await scene.flush(moved=(moved(claimed, 1, finished=True),))).lost


async def test_a_failure_of_what_was_under_way_waits_for_the_resumption(
    scene: Scene,
) -> None:
    """The first delivery began before the pause."""
    feed = await scene.add_feed()
    subscription = await scene.subscribe(feed)
    await scene.publish(feed, "a")
    (chunk,) = await scene.claim()
    await pause(scene, subscription)

    await scene.fail(chunk, subscription, when=at(2))

    held = await retry_of(scene, subscription)
    assert held is not None
    assert (held.attempts, held.last_error) == (1, "answered 500")
    assert await scene.claim_retrying(at(1_000)) == []
    await resume(scene, subscription)
    assert len(await scene.claim_retrying(at(9))) == 1


async def test_a_first_delivery_that_was_taken_is_not_owed(scene: Scene) -> None:
    feed = await scene.add_feed()
    subscription = await scene.subscribe(feed)
    await scene.publish(feed, "a")
    (chunk,) = await scene.claim()
    await pause(scene, subscription)

    await scene.flush(outcomes=all_of(chunk))
    assert await retry_of(scene, subscription) is None
    second = await scene.publish(feed, "b")
    await scene.deliver(at(2))

    owed = await retry_of(scene, subscription)
    assert owed is not None
    assert owed.position == second - 1


@pytest.mark.parametrize("is_voided", [True, False])
async def test_a_chunk_that_was_left_behind_owes_its_paused_members(
    scene: Scene, is_voided: bool
) -> None:
    """By a process that died, or was late: who had it is not owed it."""
    feed = await scene.add_feed()
    paused, had_it, healthy = [await scene.subscribe(feed, name) for name in "abc"]
    position = await scene.publish(feed, "a")
    (chunk,) = await scene.claim()
    await scene.flush(outcomes=(outcome_of(chunk, 1),))
    await pause(scene, paused, had_it)
    if is_voided:
        await scene.storage.membership.join(NODE)

    (again,) = await scene.claim(at(120), lease_id=LEASE + 1)

    assert [each.id for _, each in again.pending] == [healthy.id]
    owed = await retry_of(scene, paused)
    assert owed is not None
    assert (owed.position, owed.is_paused) == (position - 1, True)
    assert await retry_of(scene, had_it) is None
    await scene.flush(outcomes=all_of(again))
    assert (await scene.storage.backlog()).chunks == 0


async def test_a_restart_resumes_nothing(scene: Scene) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    await scene.claim_retrying(at(5))
    await pause(scene, late, when=at(6))

    await scene.storage.membership.join(NODE)

    assert await scene.claim_retrying(at(1_000)) == []
    await resume(scene, late)
    (claimed,) = await scene.claim_retrying(at(9))
    assert claimed.subscription.id == late.id


async def test_of_a_large_topic_only_those_who_are_paused_are_left_out(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    members = [await scene.subscribe(feed, f"{number}") for number in range(1_010)]
    paused = [each for number, each in enumerate(members) if number % 3 == 0]
    await pause(scene, *paused)

    await scene.publish(feed, "a")
    claimed: list[SubscriptionId] = []
    while chunks := await scene.claim(at(2)):
        for chunk in chunks:
            assert len(chunk.pending) <= 500
            claimed += [each.id for _, each in chunk.pending]
            await scene.flush(outcomes=all_of(chunk))

    expected = {each.id for each in members} - {each.id for each in paused}
    assert sorted(claimed) == sorted(expected)
    assert (await scene.storage.backlog()).retrying == len(paused)


async def test_how_it_is_says_since_when_it_is_paused_and_what_it_is_after(
    scene: Scene,
) -> None:
    feed, paused = await paused_one(scene)
    await pause(scene, paused, when=at(3))  # once more
    assert (await condition(scene, paused)).since == at(1)
    counts = await scene.storage.subscription_selections.counts()
    assert counts == {SubscriptionHealth.PAUSED: 1}

    await scene.publish(feed, "a")
    await scene.deliver(at(4))
    await resume(scene, paused)

    behind = await condition(scene, paused)
    assert (behind.health, behind.since) == (SubscriptionHealth.SLOW, at(4))
    assert behind.reason == WAS_PAUSED
    (claimed,) = await scene.claim_retrying(at(9))
    await scene.flush(when=at(10), moved=(moved(claimed, 1, finished=True),))
    well = await condition(scene, paused)
    assert (well.health, well.since) == (SubscriptionHealth.OK, at(10))


async def test_one_that_failed_fails_again_when_it_is_resumed(scene: Scene) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())
    failing = await condition(scene, late)
    await pause(scene, late)
    paused = await condition(scene, late)
    assert (paused.health, paused.reason) == (SubscriptionHealth.PAUSED, "")

    await resume(scene, late)

    assert await condition(scene, late) == failing


async def test_who_is_not_paused_is_not_changed_by_a_resumption(scene: Scene) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())
    before = await retry_of(scene, late), await condition(scene, late)

    await resume(scene, late, at(2))

    assert (await retry_of(scene, late), await condition(scene, late)) == before
    assert await scene.claim_retrying(at(2)) == []


async def test_what_is_not_active_cannot_be_paused_or_resumed(scene: Scene) -> None:
    subscriptions = scene.storage.subscriptions
    ended = await scene.subscribe(await scene.add_feed())
    await subscriptions.end(ended.id, "enough", at(1), tell=False)
    for each in (ended.id, NOBODY):
        assert not await subscriptions.pause(each, at(2))
        assert not await subscriptions.resume(each, at(2))


async def test_nothing_is_tried_by_hand_while_it_is_paused(scene: Scene) -> None:
    deliveries = scene.storage.deliveries
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    (claimed,) = await scene.claim_retrying(at(5))
    lost = NewDeadLetter(
        subscription_id=late.id,
        lease_id=claimed.lease_id,
        first=Position(1),
        last=Position(1),
        reason="gave up",
        at=at(6),
    )
    await scene.flush(given_up=(lost,))
    await pause(scene, late)

    with pytest.raises(SubscriptionPaused):
        await deliveries.retry_dead_letter(1, at(7))
    with pytest.raises(SubscriptionPaused):
        await deliveries.retry_now(late.id, at(7))

    await resume(scene, late)
    with pytest.raises(NotFound):
        await deliveries.retry_now(late.id, at(9))
    await deliveries.retry_dead_letter(1, at(9))
    assert len(await scene.claim_retrying(at(9))) == 1


async def test_its_lease_goes_on_and_it_may_be_renewed_or_end(scene: Scene) -> None:
    subscriptions = scene.storage.subscriptions
    feed = await scene.add_feed()
    paused = await scene.subscribe(feed, lease_end=at(50))
    await pause(scene, paused)
    await scene.publish(feed, "a")
    await scene.deliver(at(2))

    renewed = new_subscription(feed, format=Format.ATOM, lease_end=at(100))
    await subscriptions.add(renewed, at(40))
    assert (await condition(scene, paused)).health is SubscriptionHealth.PAUSED
    assert await scene.claim_retrying(at(40)) == []

    assert await subscriptions.expire(at(100), 9) == 1
    assert (await condition(scene, paused)).health is SubscriptionHealth.ENDED
    assert await retry_of(scene, paused) is None
    assert not await subscriptions.resume(paused.id, at(101))


async def test_who_subscribes_anew_is_not_paused(scene: Scene) -> None:
    feed, paused = await paused_one(scene)
    await scene.storage.subscriptions.end(paused.id, "enough", at(2), tell=False)

    again = await scene.subscribe(feed)

    assert again.id == paused.id
    assert (await condition(scene, again)).health is SubscriptionHealth.OK
    position = await scene.publish(feed, "a")
    assert await scene.deliver(at(3)) == [position]


async def test_what_the_log_cannot_keep_for_it_becomes_a_dead_letter(
    scene: Scene,
) -> None:
    feed, paused = await paused_one(scene)
    for name in "abc":
        await scene.publish(feed, name)
    await scene.deliver(at(2))
    soft = Retention(
        soft_age=float("inf"), soft_count=0, hard_age=float("inf"), hard_count=9
    )
    assert await scene.storage.log.trim(soft, at(3), 99) == 0

    hard = Retention(
        soft_age=float("inf"), soft_count=0, hard_age=float("inf"), hard_count=1
    )
    assert await scene.storage.log.trim(hard, at(3), 99) == 2

    (dead,) = await scene.storage.deliveries.dead_letters(after=0, limit=9)
    assert (dead.first, dead.last, dead.reason) == (1, 2, "trimmed")
    await resume(scene, paused)
    (claimed,) = await scene.claim_retrying(at(9))
    assert (claimed.position, claimed.missed) == (2, (1, 2))


async def test_who_watches_is_told_when_it_is_durable(scene: Scene) -> None:
    subscriptions = scene.storage.subscriptions
    subscription = await scene.subscribe(await scene.add_feed())
    told: list[ControlEvent] = []
    with scene.storage.control.watch(told.append):
        await subscriptions.pause(NOBODY, at(1))
        await pause(scene, subscription)
        assert told == [PauseChanged(subscription.id, is_paused=True)]
        await resume(scene, subscription)
    await pause(scene, subscription)
    assert told == [PauseChanged(subscription.id, each) for each in (True, False)]
