"""Giving up and replaying, on every engine: nothing is lost without a trace."""

from __future__ import annotations

from math import inf

import pytest
from msgspec.structs import replace

from storage.errors import NotFound, StorageBusy
from storage.records import (
    DeadLetter,
    NewDeadLetter,
    Position,
    RecordKind,
    Retention,
    RetryingSubscription,
    RetryMoved,
    StoredFeed,
    Subscription,
    Updates,
)
from tests.support.storage_scene import START, Scene, all_of, at

REASON = "answered 500 (after 11 tries)"


def given_up(
    subscription: Subscription, first: int, last: int, lease_id: int = 0
) -> NewDeadLetter:
    return NewDeadLetter(
        subscription_id=subscription.id,
        lease_id=lease_id,
        first=Position(first),
        last=Position(last),
        reason=REASON,
        at=at(9),
    )


async def give_up(scene: Scene, late: Subscription, last: int) -> RetryingSubscription:
    """Claim its retry and give up all above where it stands."""
    (claimed,) = await scene.claim_retrying(at(5))
    lost = given_up(late, claimed.position + 1, last, claimed.lease_id)
    flushed = await scene.flush(given_up=(lost,))
    assert not flushed.lost
    return claimed


async def dead(scene: Scene) -> list[DeadLetter]:
    return await scene.storage.deliveries.dead_letters(after=0, limit=9)


async def bounds(scene: Scene) -> list[tuple[int, int]]:
    return [(each.first, each.last) for each in await dead(scene)]


async def kill(scene: Scene, feed: StoredFeed) -> Subscription:
    """A subscription with a dead letter of the record at the head."""
    late = await scene.subscribe_retrying(feed)
    await give_up(scene, late, (await scene.storage.log.end()).position)
    return late


async def fail_again(scene: Scene, subscription: Subscription) -> None:
    """A new record as a probe that fails."""
    (chunk,) = await scene.claim()
    position = chunk.record.position
    await scene.flush(
        outcomes=all_of(chunk, 500),
        given_up=(given_up(subscription, position, position),),
    )


async def trim_all(scene: Scene) -> None:
    everything = Retention(soft_age=inf, soft_count=0, hard_age=inf, hard_count=0)
    await scene.storage.log.trim(everything, START, 99)


async def test_what_was_given_up_lies_in_a_dead_letter_with_the_reason(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    await scene.publish(feed)

    await give_up(scene, late, 2)

    (range_,) = await dead(scene)
    assert (range_.first, range_.last, range_.reason) == (1, 2, REASON)
    assert (range_.subscription_id, range_.at) == (late.id, at(9))
    assert (range_.topic, range_.callback) == (late.topic, late.callback)
    deliveries = scene.storage.deliveries
    assert await deliveries.dead_letters(after=range_.id, limit=9) == []


async def test_giving_up_closes_the_retry_and_marks_the_subscription(
    scene: Scene,
) -> None:
    late = await kill(scene, await scene.add_feed())

    subscription = await scene.storage.subscriptions.get(late.id)

    assert subscription is not None
    assert (subscription.exhausted, subscription.from_position) == (True, 1)
    assert await scene.storage.deliveries.retrying_subscription(late.id) is None


async def test_what_could_not_be_tried_leaves_the_subscription_its_tries(
    scene: Scene,
) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())
    (claimed,) = await scene.claim_retrying(at(5))
    lost = replace(given_up(late, 1, 1, claimed.lease_id), was_untried=True)
    await scene.flush(given_up=(lost,))
    subscription = await scene.storage.subscriptions.get(late.id)
    assert subscription is not None
    assert (subscription.exhausted, subscription.from_position) == (False, 1)
    assert await bounds(scene) == [(1, 1)]


async def test_an_exhausted_subscription_stays_and_gets_each_new_record(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    late = await kill(scene, feed)
    await scene.publish(feed)

    (probe,) = await scene.claim()

    assert [(each.id, each.exhausted) for _, each in probe.pending] == [(late.id, True)]


async def test_a_success_makes_it_well_again(scene: Scene) -> None:
    feed = await scene.add_feed()
    late = await kill(scene, feed)
    await scene.publish(feed)
    (probe,) = await scene.claim()

    await scene.flush(outcomes=all_of(probe), recovered=(late.id,))

    subscription = await scene.storage.subscriptions.get(late.id)
    assert subscription is not None
    assert not subscription.exhausted


async def test_probes_that_fail_extend_one_range(scene: Scene) -> None:
    feed, other = await scene.add_feed("a"), await scene.add_feed("b")
    late = await kill(scene, feed)
    await scene.publish(other)
    for kind in (RecordKind.ENTRIES, RecordKind.DELETED, RecordKind.ENTRIES):
        await scene.publish(feed, "k", kind=kind)

    await fail_again(scene, late)
    await fail_again(scene, late)

    assert await bounds(scene) == [(1, 5)]


async def test_a_delivery_in_between_starts_another_range(scene: Scene) -> None:
    feed = await scene.add_feed()
    late = await kill(scene, feed)
    await scene.publish(feed)
    await scene.deliver()
    await scene.publish(feed)

    await fail_again(scene, late)

    assert await bounds(scene) == [(1, 1), (3, 3)]


async def test_a_delivery_in_between_counts_even_when_it_was_trimmed(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    late = await kill(scene, feed)
    await scene.publish(feed)
    await scene.deliver()
    await trim_all(scene)
    await scene.publish(feed)

    await fail_again(scene, late)

    assert await bounds(scene) == [(1, 1), (3, 3)]


async def test_what_the_fanout_passed_by_meanwhile_is_given_up_too(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    await scene.publish(feed)
    await scene.deliver()  # splits the second record without the retry

    await give_up(scene, late, 1)

    assert await bounds(scene) == [(1, 2)]
    await scene.publish(feed)
    (chunk,) = await scene.claim()
    assert chunk.record.position == 3


async def test_giving_up_under_a_lost_lease_changes_nothing(scene: Scene) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())
    await scene.claim_retrying(at(5), lease_id=2)

    stale = await scene.flush(given_up=(given_up(late, 1, 1, lease_id=1),))
    from_chunk = await scene.flush(given_up=(given_up(late, 1, 1),))

    assert stale.lost == from_chunk.lost == {late.id}
    assert await dead(scene) == []
    assert await scene.storage.deliveries.retrying_subscription(late.id) is not None


async def test_an_ended_subscription_gives_nothing_up(scene: Scene) -> None:
    feed = await scene.add_feed()
    ended = await scene.subscribe(feed)
    await scene.publish(feed)
    (chunk,) = await scene.claim()
    await scene.storage.subscriptions.end(ended.id, "enough", START, tell=False)

    flushed = await scene.flush(
        outcomes=all_of(chunk, 500), given_up=(given_up(ended, 1, 1),)
    )

    assert flushed.lost == {ended.id}
    assert await dead(scene) == []


async def test_a_retry_may_give_up_two_ranges_at_once(scene: Scene) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    for _ in range(2):
        await scene.publish(feed)
    (claimed,) = await scene.claim_retrying(at(5))

    flushed = await scene.flush(
        given_up=(
            given_up(late, 1, 1, claimed.lease_id),
            given_up(late, 3, 3, claimed.lease_id),
        )
    )

    assert flushed.lost == frozenset()
    assert await bounds(scene) == [(1, 1), (3, 3)]


# --- replaying ---


async def test_a_dead_letter_becomes_a_retry_that_is_due_now(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    late = await kill(scene, feed)
    (range_,) = await dead(scene)

    await scene.storage.deliveries.retry_dead_letter(range_.id, at(10))

    assert await dead(scene) == []
    (retrying,) = await scene.claim_retrying(at(10))
    assert retrying.subscription.id == late.id
    assert (retrying.position, retrying.attempts) == (0, 0)
    assert (retrying.skip_after, retrying.skip_to) == (1, 1), "it skips nothing"


async def test_a_retried_range_skips_what_was_delivered_since(scene: Scene) -> None:
    feed = await scene.add_feed()
    late = await kill(scene, feed)
    await scene.publish(feed)
    await scene.deliver()
    await scene.publish(feed)  # not split yet: the retry has to deliver it
    (range_,) = await dead(scene)

    await scene.storage.deliveries.retry_dead_letter(range_.id, at(10))

    retrying = await scene.storage.deliveries.retrying_subscription(late.id)
    assert retrying is not None
    assert (retrying.position, retrying.skip_after, retrying.skip_to) == (0, 1, 2)
    assert await scene.claim() == []


async def test_a_retried_range_that_is_done_leaves_what_was_delivered_since_alone(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    late = await kill(scene, feed)
    await scene.publish(feed)
    await scene.deliver()
    (range_,) = await dead(scene)
    await scene.storage.deliveries.retry_dead_letter(range_.id, at(10))
    (retrying,) = await scene.claim_retrying(at(10))

    done = RetryMoved(
        subscription_id=late.id,
        lease_id=retrying.lease_id,
        position=Position(1),
        attempts=0,
        next_try=at(70),
        last_status=200,
        finished=True,
    )
    flushed = await scene.flush(moved=(done,))

    assert flushed.unfinished == frozenset()
    subscription = await scene.storage.subscriptions.get(late.id)
    assert subscription is not None
    assert subscription.from_position == 2


async def test_a_retried_range_that_fails_is_buried_without_what_was_delivered_since(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    late = await kill(scene, feed)
    await scene.publish(feed)
    await scene.deliver()
    (range_,) = await dead(scene)
    await scene.storage.deliveries.retry_dead_letter(range_.id, START)
    await scene.publish(feed)

    await give_up(scene, late, 3)

    assert await bounds(scene) == [(1, 1), (3, 3)]


async def test_an_unknown_range_and_one_of_an_ended_subscription_are_not_retried(
    scene: Scene,
) -> None:
    late = await kill(scene, await scene.add_feed())
    (range_,) = await dead(scene)
    await scene.storage.subscriptions.end(late.id, "enough", START, tell=False)

    for dead_id in (range_.id, 99):
        with pytest.raises(NotFound):
            await scene.storage.deliveries.retry_dead_letter(dead_id, START)

    assert await dead(scene) == [range_]


async def test_a_range_whose_records_were_trimmed_is_kept_but_not_retried(
    scene: Scene,
) -> None:
    await kill(scene, await scene.add_feed())
    await trim_all(scene)
    (range_,) = await dead(scene)

    with pytest.raises(NotFound):
        await scene.storage.deliveries.retry_dead_letter(range_.id, START)

    assert await dead(scene) == [range_]


async def test_what_is_left_of_a_range_is_retried(scene: Scene) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    await scene.publish(feed)
    await give_up(scene, late, 2)
    await scene.deliver()
    one = Retention(soft_age=inf, soft_count=1, hard_age=inf, hard_count=1)
    await scene.storage.log.trim(one, START, 9)
    (range_,) = await dead(scene)

    await scene.storage.deliveries.retry_dead_letter(range_.id, START)

    assert await bounds(scene) == [(1, 1)]
    retrying = await scene.storage.deliveries.retrying_subscription(late.id)
    assert retrying is not None
    assert retrying.position == 1


async def test_a_subscription_in_an_unfinished_chunk_is_not_set_back(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    await kill(scene, feed)
    await scene.publish(feed)
    await scene.claim()
    (range_,) = await dead(scene)

    with pytest.raises(StorageBusy):
        await scene.storage.deliveries.retry_dead_letter(range_.id, START)

    assert await dead(scene) == [range_]


async def test_a_retry_right_behind_the_range_is_set_back(scene: Scene) -> None:
    feed, other = await scene.add_feed("a"), await scene.add_feed("b")
    late = await kill(scene, feed)
    await scene.publish(other)
    await scene.publish(feed)
    (chunk,) = await scene.claim()
    await scene.fail(chunk, late)
    (range_,) = await dead(scene)

    await scene.storage.deliveries.retry_dead_letter(range_.id, at(20))

    retrying = await scene.storage.deliveries.retrying_subscription(late.id)
    assert retrying is not None
    assert (retrying.position, retrying.next_try) == (0, at(20))
    assert (retrying.skip_after, retrying.skip_to) == (2, 2), "it skips nothing"


async def test_a_retry_that_sends_another_dead_letter_is_not_set_back(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    late = await kill(scene, feed)
    await scene.publish(feed)
    await scene.deliver()
    await scene.publish(feed)
    await fail_again(scene, late)
    first, second = await dead(scene)
    await scene.storage.deliveries.retry_dead_letter(first.id, START)
    with pytest.raises(StorageBusy):
        await scene.storage.deliveries.retry_dead_letter(second.id, START)
    assert await dead(scene) == [second]


@pytest.mark.parametrize("is_leased", [True, False])
async def test_a_retry_that_stands_elsewhere_or_is_at_work_is_not_set_back(
    scene: Scene, is_leased: bool
) -> None:
    feed = await scene.add_feed()
    late = await kill(scene, feed)
    if not is_leased:
        await scene.publish(feed)
        await scene.deliver()  # so that it stands above a record that it got
    await scene.publish(feed)
    (chunk,) = await scene.claim()
    await scene.fail(chunk, late, lease_id=5 if is_leased else 0)
    (range_,) = await dead(scene)

    with pytest.raises(StorageBusy):
        await scene.storage.deliveries.retry_dead_letter(range_.id, START)

    assert await dead(scene) == [range_]


async def test_an_unwanted_record_in_between_does_not_keep_ranges_apart(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    late = await kill(scene, feed)
    await scene.subscribe(feed, "keen", updates=Updates.ALL)
    await scene.publish(feed, "k", kind=RecordKind.DELETED)
    await scene.deliver()
    await scene.publish(feed)
    await fail_again(scene, late)

    assert await bounds(scene) == [(1, 3)]


async def test_a_purged_subscription_takes_its_dead_letters_and_no_others(
    scene: Scene,
) -> None:
    gone = await kill(scene, await scene.add_feed("gone"))
    kept = await kill(scene, await scene.add_feed("kept"))
    await scene.storage.subscriptions.end(gone.id, "enough", START, tell=False)

    assert await scene.storage.subscriptions.purge_ended(at(1), 9) == 1

    assert [each.subscription_id for each in await dead(scene)] == [kept.id]


async def test_dead_letters_are_found_by_their_subscriptions_and_what_they_cover(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    first, second, other = [await scene.subscribe(feed, name) for name in "abc"]
    for number in range(8):
        await scene.publish(feed, f"{number}")
    lost = [
        given_up(first, 1, 2),
        given_up(first, 5, 6),
        given_up(second, 2, 5),
        given_up(other, 1, 8),
    ]
    await scene.flush(given_up=tuple(lost))

    async def found(*positions: int) -> list[tuple[int, int, int]]:
        return [
            (each.subscription_id, each.first, each.last)
            for each in await scene.storage.deliveries.dead_letters_of(
                [first.id, second.id], [Position(each) for each in positions]
            )
        ]

    assert await found(2) == [(first.id, 1, 2), (second.id, 2, 5)]
    assert await found(1, 6, 7) == [(first.id, 1, 2), (first.id, 5, 6)]
    assert await found(7) == await found() == []
