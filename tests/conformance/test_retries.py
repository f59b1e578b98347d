"""Catching up, on every engine: one open row per subscription, moved under a lease."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from storage.errors import NotFound
from storage.records import (
    Attempt,
    AttemptRange,
    NewDeadLetter,
    Position,
    RecordKind,
    RetryingSubscription,
    RetryMoved,
    RetryOpened,
    Subscription,
    SubscriptionId,
    SubscriptionState,
)
from tests.support.failures import failed
from tests.support.storage_scene import NODE, START, Scene, all_of, at


def moved(
    retrying: RetryingSubscription,
    position: int,
    *,
    when: datetime = START,
    **more: object,
) -> RetryMoved:
    outcome = {
        "attempts": 0,
        "next_try": when + timedelta(seconds=60),
        "last_status": 200,
    }
    return RetryMoved(
        subscription_id=retrying.subscription.id,
        lease_id=retrying.lease_id,
        position=Position(position),
        **{**outcome, **more},
    )


def opened(subscription: Subscription, position: int, **more: object) -> RetryOpened:
    terms = {"attempts": 1, "next_try": at(5), "failing_since": START}
    return RetryOpened(
        subscription_id=subscription.id,
        position=Position(position),
        **{**terms, **more},
    )


async def open_one(scene: Scene, subscription: Subscription) -> RetryingSubscription:
    found = await scene.storage.deliveries.retrying_subscription(subscription.id)
    assert found is not None
    return found


async def test_a_retry_stands_before_the_record_it_did_not_take(
    scene: Scene,
) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())

    retrying = await open_one(scene, late)

    assert (retrying.subscription, retrying.position) == (late, 0)
    assert (retrying.attempts, retrying.next_try) == (1, at(5))
    assert (retrying.last_status, retrying.last_error) == (500, "answered 500")
    assert (retrying.failing_since, retrying.lease_id) == (START, 0)
    assert await scene.storage.deliveries.retrying(after=0, limit=9) == [retrying]
    assert await scene.storage.deliveries.retrying(after=late.id, limit=9) == []


async def test_a_retry_that_is_open_is_never_moved_forward_by_opening(
    scene: Scene,
) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())
    before = await open_one(scene, late)

    await scene.flush(opened=(opened(late, 7, attempts=9, lease_id=5),))

    assert await open_one(scene, late) == before


async def test_how_far_the_request_went_that_is_to_be_repeated_is_kept(
    scene: Scene,
) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())
    (claimed,) = await scene.claim_retrying(at(5))
    tried = moved(claimed, 0, last_status=500, tried_to=Position(3), release=True)

    await scene.flush(moved=(tried,))
    await scene.flush(opened=(opened(late, 0, tried_to=Position(1)),))

    assert (await open_one(scene, late)).tried_to == 3
    (claimed,) = await scene.claim_retrying(at(99))
    await scene.flush(moved=(moved(claimed, 3, release=True),))
    assert (await open_one(scene, late)).tried_to is None
    await scene.flush(opened=(opened(late, 1, tried_to=Position(2)),))
    assert (await open_one(scene, late)).tried_to == 2


async def test_news_makes_a_retry_due_and_leaves_its_next_try(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    (claimed,) = await scene.claim_retrying(at(5))
    failed = {"attempts": 2, "next_try": at(99), "last_status": 500, "release": True}
    await scene.flush(moved=(moved(claimed, 0, news_from=at(15), **failed),))

    await scene.publish(feed, "too soon", when=at(14))
    await scene.deliver(at(14))
    assert await scene.claim_retrying(at(14)) == []

    await scene.publish(feed, "news", when=at(15))
    await scene.deliver(at(15))
    assert await scene.storage.deliveries.next_retry() == at(15)
    (claimed,) = await scene.claim_retrying(at(15))
    assert (claimed.subscription.id, claimed.next_try) == (late.id, at(99))


@pytest.mark.parametrize(
    "what", ["of another feed", "unwanted", "under way", "put off"]
)
async def test_news_leaves_a_retry_alone_that_is(scene: Scene, what: str) -> None:
    feed = await scene.add_feed()
    await scene.subscribe_retrying(feed)
    (claimed,) = await scene.claim_retrying(at(5))
    failed = {"next_try": at(99), "news_from": at(15), "release": what != "under way"}
    if what == "put off":
        failed |= {"due": at(50), "news_from": at(50)}
    await scene.flush(moved=(moved(claimed, 0, **failed),))
    about = await scene.add_feed("b") if what == "of another feed" else feed
    kind = RecordKind.UPDATED if what == "unwanted" else RecordKind.ENTRIES
    keys = ("for late",) if what == "unwanted" else ("news",)

    await scene.publish(about, *keys, kind=kind, is_fresh=False, when=at(20))
    await scene.deliver(at(20))

    due = at(50) if what == "put off" else at(99)
    assert await scene.storage.deliveries.next_retry() == due


async def test_news_hurries_a_thousand_retries_those_that_waited_longest(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    all_late = [await scene.subscribe(feed, f"{number}") for number in range(1_002)]
    waiting = tuple(
        opened(each, 0, next_try=at(99), news_from=at(50 - number / 100))
        for number, each in enumerate(all_late)
    )
    await scene.flush(opened=waiting)

    await scene.publish(feed, "news", when=at(60))
    await scene.deliver(at(60))

    claimed = await scene.claim_retrying(at(60), limit=2_000)
    hurried = {each.subscription.id for each in claimed}
    assert hurried == {each.id for each in all_late[2:]}


async def test_an_ended_or_unknown_subscription_gets_no_retry(scene: Scene) -> None:
    ended = await scene.subscribe(await scene.add_feed())
    await scene.storage.subscriptions.end(ended.id, "enough", START, tell=False)
    unknown = RetryOpened(
        subscription_id=SubscriptionId(99),
        position=Position(0),
        attempts=1,
        next_try=START,
        failing_since=START,
    )

    await scene.flush(opened=(opened(ended, 0), unknown))

    assert await scene.storage.deliveries.retrying(after=0, limit=9) == []


async def test_retries_are_claimed_when_they_are_due_and_nobodys(
    scene: Scene,
) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())
    deliveries = scene.storage.deliveries

    too_early = await scene.claim_retrying(at(4))
    next_try = await deliveries.next_retry()
    (claimed,) = await scene.claim_retrying(at(5), lease_id=7)
    taken = await scene.claim_retrying(at(6), lease_id=8)
    lease_end = await deliveries.next_retry()
    (after_lease,) = await scene.claim_retrying(at(65), lease_id=8)

    assert (too_early, taken) == ([], [])
    assert (next_try, lease_end) == (at(5), at(65))
    assert (claimed.subscription.id, claimed.lease_id) == (late.id, 7)
    assert after_lease.lease_id == 8


async def test_the_longest_due_are_claimed_first(scene: Scene) -> None:
    feed = await scene.add_feed()
    names = "123"
    late = [await scene.subscribe(feed, name) for name in names]
    await scene.publish(feed)
    (chunk,) = await scene.claim()
    await scene.flush(
        outcomes=all_of(chunk, 500),
        opened=tuple(
            opened(each, 0, next_try=at(10 - number))
            for number, each in enumerate(late)
        ),
    )

    claimed = await scene.claim_retrying(at(20), limit=2)

    assert [each.subscription.id for each in claimed] == [late[2].id, late[1].id]


async def test_a_first_delivery_that_still_runs_keeps_its_retry(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    subscription = await scene.subscribe(feed)
    await scene.publish(feed)
    (chunk,) = await scene.claim()
    await scene.fail(chunk, subscription, lease_id=55, retry_after=60)

    assert await scene.claim_retrying(at(59)) == []
    lost = await scene.flush(
        moved=(moved(await open_one(scene, subscription), 1, finished=True),)
    )

    assert lost.lost == frozenset()
    assert await scene.storage.deliveries.retrying_subscription(subscription.id) is None


async def test_a_success_moves_it_on_under_its_lease(scene: Scene) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())
    (claimed,) = await scene.claim_retrying(at(5))

    flushed = await scene.flush(when=at(6), moved=(moved(claimed, 1, when=at(6)),))

    retrying = await open_one(scene, late)
    assert flushed.lost == frozenset()
    assert (retrying.position, retrying.attempts) == (1, 0)
    assert retrying.lease_id == claimed.lease_id
    assert retrying.failing_since == at(6), "it stands at its next record since then"
    assert await scene.claim_retrying(at(65)) == [], "the lease goes on"


async def test_a_failure_gives_it_back_until_its_next_try(scene: Scene) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())
    (claimed,) = await scene.claim_retrying(at(5))
    failed = moved(
        claimed,
        0,
        attempts=2,
        next_try=at(300),
        last_status=503,
        last_error="answered 503",
        release=True,
    )

    await scene.flush(when=at(6), moved=(failed,))

    retrying = await open_one(scene, late)
    assert (retrying.attempts, retrying.lease_id) == (2, 0)
    assert (retrying.last_status, retrying.last_error) == (503, "answered 503")
    assert retrying.failing_since == START
    assert await scene.storage.deliveries.next_retry() == at(300)


async def test_an_outcome_under_a_lost_lease_changes_nothing(scene: Scene) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())
    (stale,) = await scene.claim_retrying(at(5), lease_id=1)
    await scene.claim_retrying(at(65), lease_id=2)
    before = await open_one(scene, late)

    flushed = await scene.flush(moved=(moved(stale, 1, finished=True),))

    assert flushed.lost == {late.id}
    assert await open_one(scene, late) == before


async def test_nothing_is_opened_or_given_up_of_a_chunk_that_somebody_else_delivers(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    failed, given_up = [await scene.subscribe(feed, name) for name in "ab"]
    await scene.publish(feed, "k")
    (stale,) = await scene.claim(lease_id=1)
    (ours,) = await scene.claim(at(65), lease_id=2)
    lost = NewDeadLetter(
        subscription_id=given_up.id,
        lease_id=0,
        chunk=(stale.id, 1),
        first=Position(1),
        last=Position(1),
        reason="refused",
        at=START,
    )

    await scene.flush(
        outcomes=all_of(stale),
        opened=(opened(failed, 0, chunk=(stale.id, 1)),),
        given_up=(lost,),
    )

    deliveries = scene.storage.deliveries
    assert await deliveries.retrying_subscription(failed.id) is None
    assert await deliveries.dead_letters(after=0, limit=9) == []
    await scene.flush(
        outcomes=all_of(ours), opened=(opened(failed, 0, chunk=(ours.id, 2)),)
    )
    assert await deliveries.retrying_subscription(failed.id) is not None


async def test_it_is_closed_when_nothing_it_wants_is_left(scene: Scene) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    await scene.publish(feed, "k", kind=RecordKind.DELETED)
    (claimed,) = await scene.claim_retrying(at(5))

    flushed = await scene.flush(moved=(moved(claimed, 1, finished=True),))

    assert flushed.unfinished == frozenset()
    assert await scene.storage.deliveries.retrying_subscription(late.id) is None
    closed = await scene.storage.subscriptions.get(late.id)
    assert closed is not None
    assert closed.from_position == 1


async def test_it_stays_open_under_its_lease_while_it_wants_something_newer(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    (claimed,) = await scene.claim_retrying(at(5))
    await scene.publish(feed)

    flushed = await scene.flush(moved=(moved(claimed, 1, finished=True, release=True),))

    assert flushed.unfinished == {late.id}
    retrying = await open_one(scene, late)
    assert (retrying.position, retrying.lease_id) == (1, claimed.lease_id)


async def test_what_it_caught_up_with_is_not_sent_again_by_the_fanout(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    await scene.subscribe_retrying(feed)
    position = await scene.publish(feed)
    (claimed,) = await scene.claim_retrying(at(5))
    await scene.flush(moved=(moved(claimed, position, finished=True),))

    assert await scene.claim() == [], "its fan-out was not split yet"

    await scene.publish(feed)
    assert len(await scene.claim()) == 1


async def test_a_retry_never_goes_back(scene: Scene) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    await scene.publish(feed)
    await scene.publish(feed)
    (claimed,) = await scene.claim_retrying(at(5))
    await scene.flush(moved=(moved(claimed, 2),))

    await scene.flush(moved=(moved(claimed, 1),))

    assert (await open_one(scene, late)).position == 2


async def test_voiding_leases_makes_it_due_at_once(scene: Scene) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())
    (stale,) = await scene.claim_retrying(at(5))

    await scene.storage.membership.join(NODE)

    assert (await open_one(scene, late)).lease_id == 0
    (again,) = await scene.claim_retrying(at(6), lease_id=2)
    assert again.subscription.id == late.id
    flushed = await scene.flush(moved=(moved(stale, 1),))
    assert flushed.lost == {late.id}


@pytest.mark.parametrize(("attempts", "scheduled"), [(2, at(99)), (0, START)])
async def test_voiding_leases_leaves_the_schedule_of_what_has_failed(
    scene: Scene, attempts: int, scheduled: datetime
) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())
    (claimed,) = await scene.claim_retrying(at(5))
    announced = moved(
        claimed, 0, attempts=attempts, next_try=at(99), due=at(66), last_status=500
    )
    await scene.flush(when=at(6), moved=(announced,))
    assert await scene.claim_retrying(at(65)) == [], "the lease goes on"

    for lease_id in (2, 3):
        await scene.storage.membership.join(NODE)
        (again,) = await scene.claim_retrying(at(7), lease_id=lease_id)
        assert (again.subscription.id, again.attempts) == (late.id, attempts)
        assert again.next_try == scheduled


async def test_retrying_makes_it_due_now_and_leaves_its_schedule(scene: Scene) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())
    scheduled = (await open_one(scene, late)).next_try

    assert await scene.storage.deliveries.retry_now(late.id, at(1))

    (claimed,) = await scene.claim_retrying(at(1))
    assert claimed.next_try == scheduled > at(1)
    assert not await scene.storage.deliveries.retry_now(late.id, at(2))
    assert await scene.claim_retrying(at(2)) == [], "it is being tried already"
    with pytest.raises(NotFound):
        await scene.storage.deliveries.retry_now(SubscriptionId(99), START)


async def test_a_callback_that_is_gone_ends_its_subscription_untold(
    scene: Scene,
) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())

    await scene.flush(ended=((late.id, "the callback answered 410 Gone"),))

    ended = await scene.storage.subscriptions.get(late.id)
    assert ended is not None
    assert ended.state is SubscriptionState.ENDED
    assert ended.ended_reason == "the callback answered 410 Gone"
    assert await scene.storage.deliveries.retrying_subscription(late.id) is None
    assert await scene.storage.subscriptions.ending(START, 9) == []


async def test_attempts_are_shown_newest_first_with_successes(scene: Scene) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    fine = await scene.subscribe(feed, "fine")
    caught_up = Attempt(
        subscription_id=late.id,
        position=Position(1),
        at=at(5),
        status=204,
        milliseconds=90,
    )
    await scene.flush(when=at(5), attempts=(caught_up,))
    await scene.publish(feed)
    await scene.deliver(at(7))

    of_late = await scene.storage.deliveries.attempts(late.id, 9)
    of_fine = await scene.storage.deliveries.attempts(fine.id, 9)

    assert [(each.status, each.error) for each in of_late] == [
        (204, ""),
        (500, "answered 500"),
    ]
    assert of_fine == [
        Attempt(
            subscription_id=fine.id,
            position=Position(2),
            at=at(7),
            status=200,
            milliseconds=12,
        )
    ]
    assert await scene.storage.deliveries.attempts(late.id, 1) == of_late[:1]


async def test_a_success_is_shown_before_its_chunk_is_finished(scene: Scene) -> None:
    feed = await scene.add_feed()
    quick, _slow = [await scene.subscribe(feed, name) for name in "12"]
    await scene.publish(feed)
    (chunk,) = await scene.claim()

    await scene.flush(when=at(1), outcomes=all_of(chunk)[:1])

    (attempt,) = await scene.storage.deliveries.attempts(quick.id, 9)
    assert (attempt.at, attempt.status) == (at(1), 200)


async def test_failures_of_a_subscription_are_kept_and_found_by_their_time(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    subscription = await scene.subscribe(feed)
    for number in range(25):
        attempt = Attempt(
            subscription_id=subscription.id,
            position=Position(1),
            at=at(number),
            status=0,
            milliseconds=0,
            error="no answer",
        )
        await scene.flush(attempts=(attempt,))

    kept = await scene.storage.deliveries.attempts(subscription.id, 99)
    of_then = AttemptRange(since=at(3), until=at(5), is_delivered=False)
    found = await scene.storage.deliveries.attempts(subscription.id, 9, of_then)

    assert [each.at for each in kept] == [at(number) for number in range(24, -1, -1)]
    assert [each.at for each in found] == [at(4), at(3)]
    assert await scene.storage.deliveries.attempts_kept_from(subscription.id) is None


async def test_old_attempts_are_trimmed_both_kinds(scene: Scene) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    fine = await scene.subscribe(feed, "fine")
    await scene.publish(feed)
    await scene.deliver(at(100))

    trim = scene.storage.deliveries.trim_attempts
    too_early = await trim(START, 9, kept=9)
    trimmed = await trim(at(50), 9, kept=9)

    assert (too_early, trimmed) == (0, 2)
    assert await scene.storage.deliveries.attempts(late.id, 9) == []
    assert len(await scene.storage.deliveries.attempts(fine.id, 9)) == 1


async def test_the_oldest_failures_of_all_make_room_when_there_are_too_many(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    a, b = [await scene.subscribe(feed, name) for name in "ab"]
    await scene.flush(attempts=tuple(failed(a, at(number)) for number in range(4)))
    await scene.flush(attempts=(failed(b, at(9)),))

    trim = scene.storage.deliveries.trim_attempts
    trimmed = [await trim(START, 2, kept=2) for _ in range(3)]

    assert trimmed == [2, 1, 0]
    of_a = await scene.storage.deliveries.attempts(a.id, 9)
    assert [each.at for each in of_a] == [at(3)]
    assert len(await scene.storage.deliveries.attempts(b.id, 9)) == 1
