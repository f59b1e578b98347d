"""What callbacks did not get, by what they answered, and discarding it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import pytest
from msgspec.structs import replace

from storage.errors import NotFound
from storage.records import (
    NewDeadLetter,
    Position,
    RetryMoved,
    Subscription,
    SubscriptionHealth,
    SubscriptionId,
    UndeliveredFilter,
    UndeliveredOutcome,
)
from tests.support.failures import details, failed
from tests.support.storage_scene import LEASE, START, Scene, all_of, at

OF_ALL = UndeliveredFilter()


async def note_failure(
    scene: Scene, late: Subscription, position: int, status: int, when: datetime
) -> None:
    """A request that failed, at a host of the subscription's own."""
    host = f"{late.callback.rpartition('/')[2]}.example"
    attempt = failed(late, when, status=status, kept=details(host))
    await scene.flush(attempts=(replace(attempt, position=Position(position)),))


async def give_up(scene: Scene, late: Subscription, last: int) -> None:
    """Make a dead letter of all that it lacks."""
    await scene.claim_retrying(at(5))
    lost = NewDeadLetter(
        subscription_id=late.id,
        lease_id=LEASE,
        first=Position(1),
        last=Position(last),
        reason="answered 500 (after 11 tries)",
        at=at(9),
    )
    assert not (await scene.flush(given_up=(lost,))).lost


@pytest.fixture
async def three(scene: Scene) -> Scene:
    """Two retrying subscriptions, to which positions 1 and 2 were to be delivered, and
    one whose retry of position 3 is a dead letter now."""
    a, b, c = [
        await scene.subscribe_retrying(await scene.add_feed(name), name)
        for name in "abc"
    ]
    await note_failure(scene, a, 1, 404, at(100))
    await note_failure(scene, b, 2, 0, at(200))
    await note_failure(scene, c, 3, 503, at(300))
    await scene.claim_retrying(at(5))
    lost = NewDeadLetter(
        subscription_id=c.id,
        lease_id=LEASE,
        first=Position(3),
        last=Position(3),
        reason="answered 503 (after 11 tries)",
        at=at(9),
    )
    await scene.flush(given_up=(lost,))
    return scene


FOUND: Final[Sequence[tuple[UndeliveredFilter, str, str]]] = (
    (OF_ALL, "ab", "c"),
    (UndeliveredFilter(statuses=(404, 404)), "a", ""),
    (UndeliveredFilter(statuses=(0, 0)), "b", ""),
    (UndeliveredFilter(statuses=(500, 599)), "ab", "c"),
    (UndeliveredFilter(statuses=(503, 503)), "", "c"),
    (UndeliveredFilter(host="b.example"), "b", ""),
    (UndeliveredFilter(host="c.example"), "", "c"),
    (UndeliveredFilter(host="b.example", statuses=(500, 599)), "", ""),
    (UndeliveredFilter(since=at(200)), "b", "c"),
    (UndeliveredFilter(since=at(200), statuses=(0, 0)), "b", ""),
    (UndeliveredFilter(since=at(301)), "", ""),
    (UndeliveredFilter(until=at(-9)), "", ""),
    (UndeliveredFilter(subscription_id=SubscriptionId(1)), "a", ""),
    (UndeliveredFilter(subscription_id=SubscriptionId(3)), "", "c"),
    (UndeliveredFilter(subscription_id=SubscriptionId(3), since=at(1)), "", "c"),
    (UndeliveredFilter(subscription_id=SubscriptionId(9)), "", ""),
    (UndeliveredFilter(outcome=UndeliveredOutcome.RETRIED), "ab", ""),
    (UndeliveredFilter(outcome=UndeliveredOutcome.GIVEN_UP), "", "c"),
    (
        UndeliveredFilter(statuses=(500, 599), outcome=UndeliveredOutcome.RETRIED),
        "ab",
        "",
    ),
    (
        UndeliveredFilter(statuses=(500, 599), outcome=UndeliveredOutcome.GIVEN_UP),
        "",
        "c",
    ),
    (UndeliveredFilter(lacking=Position(1)), "a", ""),
    (UndeliveredFilter(lacking=Position(2)), "ab", ""),
    (UndeliveredFilter(lacking=Position(3)), "ab", "c"),
    (UndeliveredFilter(lacking=Position(1), statuses=(500, 599)), "a", ""),
    (UndeliveredFilter(lacking=Position(1), subscription_id=SubscriptionId(2)), "", ""),
    (
        UndeliveredFilter(lacking=Position(2), outcome=UndeliveredOutcome.GIVEN_UP),
        "",
        "",
    ),
)


async def test_what_is_undelivered_is_found_by_the_requests_that_failed(
    three: Scene,
) -> None:
    deliveries, first = three.storage.deliveries, SubscriptionId(0)
    for wanted, retrying, dead in FOUND:
        late = await deliveries.retrying(after=first, limit=9, wanted=wanted)
        lost = await deliveries.dead_letters(after=0, limit=9, wanted=wanted)

        callbacks = "".join(each.subscription.callback[-1] for each in late)
        assert callbacks == retrying, wanted
        assert "".join(each.callback[-1] for each in lost) == dead, wanted
        number = len(retrying + dead)
        assert await deliveries.count_undelivered(wanted, 9) == number, wanted
        assert await deliveries.count_undelivered(wanted, 1) == min(number, 1), wanted


async def test_a_request_that_told_of_what_was_delivered_since_does_not_count(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    await scene.publish(feed)
    await scene.claim_retrying(at(10))
    got_it = RetryMoved(
        subscription_id=late.id,
        lease_id=LEASE,
        position=Position(1),
        attempts=0,
        next_try=at(60),
        last_status=200,
    )
    await scene.flush(moved=(got_it,))
    wanted = UndeliveredFilter(statuses=(500, 599))

    assert await scene.storage.deliveries.count_undelivered(OF_ALL, 9) == 1
    assert await scene.storage.deliveries.count_undelivered(wanted, 9) == 0


async def test_a_retry_that_is_discarded_leaves_the_subscription_what_follows(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    await scene.publish(feed)
    await scene.deliver()  # passes the second record by

    await scene.storage.deliveries.discard_retry(late.id, at(9))

    assert await scene.storage.deliveries.retrying_subscription(late.id) is None
    assert await scene.storage.deliveries.dead_letters(after=0, limit=9) == []
    [condition] = await scene.storage.subscription_selections.conditions([late.id])
    assert (condition.health, condition.since) == (SubscriptionHealth.OK, at(9))
    await scene.publish(feed)
    assert await scene.deliver() == [3]


async def test_a_try_that_is_under_way_changes_nothing_of_what_was_discarded(
    scene: Scene,
) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())
    await scene.claim_retrying(at(10))

    await scene.storage.deliveries.discard_retry(late.id, at(10))

    failed_again = RetryMoved(
        subscription_id=late.id,
        lease_id=LEASE,
        position=Position(0),
        attempts=2,
        next_try=at(60),
        last_status=500,
        last_error="answered 500",
        release=True,
    )
    assert (await scene.flush(moved=(failed_again,))).lost == {late.id}
    assert await scene.storage.deliveries.retrying_subscription(late.id) is None


async def test_what_is_not_split_yet_is_not_discarded(scene: Scene) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    await scene.publish(feed)

    await scene.storage.deliveries.discard_retry(late.id, at(9))

    [chunk] = await scene.claim(at(10))
    assert [each.id for _, each in chunk.pending] == [late.id]
    await scene.flush(outcomes=all_of(chunk))


async def test_a_dead_letter_is_discarded_once(scene: Scene) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())
    await give_up(scene, late, 1)
    deliveries = scene.storage.deliveries
    (dead,) = await deliveries.dead_letters(after=0, limit=9)

    await deliveries.discard_dead_letter(dead.id)

    assert await deliveries.dead_letters(after=0, limit=9) == []
    with pytest.raises(NotFound):
        await deliveries.discard_dead_letter(dead.id)
    with pytest.raises(NotFound):
        await deliveries.discard_retry(late.id, START)
