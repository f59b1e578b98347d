"""Attempts that failed: their details, and finding them over all subscriptions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest

from storage.records import (
    Attempt,
    AttemptFilter,
    AttemptRange,
    AttemptReason,
    Position,
    SubscriptionId,
)
from tests.support.failures import ANSWER, details, failed
from tests.support.storage_scene import Scene, at


async def test_a_failure_is_read_back_with_all_that_is_kept_of_it(scene: Scene) -> None:
    subscription = await scene.subscribe(await scene.add_feed())
    for kept in (details(answer=ANSWER), details(is_withheld=True)):
        await scene.flush(attempts=(failed(subscription, at(1), kept=kept),))

    latest, first = await scene.storage.deliveries.attempts(subscription.id, 9)
    assert first.details == details(answer=ANSWER)
    assert latest.details == details(is_withheld=True)
    found = await scene.storage.deliveries.failed_attempt(first.id)
    assert found is not None
    assert (found.attempt, found.host) == (first, "you.example")
    assert (found.topic, found.callback) == (subscription.topic, subscription.callback)


async def test_only_failures_are_found_by_their_number(scene: Scene) -> None:
    subscription = await scene.subscribe(await scene.add_feed())
    caught_up = Attempt(
        subscription_id=subscription.id,
        position=Position(1),
        at=at(1),
        status=200,
        milliseconds=1,
    )
    await scene.flush(attempts=(caught_up,))
    (stored,) = await scene.storage.deliveries.attempts(subscription.id, 9)
    assert await scene.storage.deliveries.failed_attempt(stored.id) is None
    assert await scene.storage.deliveries.failed_attempt(4_711) is None


async def test_details_are_kept_of_the_last_five_failures_however_much_follows(
    scene: Scene,
) -> None:
    subscription = await scene.subscribe(await scene.add_feed())
    for number in range(8):
        attempt = failed(subscription, at(number), kept=details())
        await scene.flush(attempts=(attempt,))
    for number in range(8, 40):
        caught_up = Attempt(
            subscription_id=subscription.id,
            position=Position(1),
            at=at(number),
            status=200,
            milliseconds=1,
        )
        await scene.flush(attempts=(caught_up,))

    kept = await scene.storage.deliveries.attempts(subscription.id, 99)

    assert len(kept) == 40
    with_details = [each.at for each in kept if each.details is not None]
    assert with_details == [at(number) for number in (7, 6, 5, 4, 3)]
    # The host is known for as long as the attempt is.
    assert await scene.storage.deliveries.count_failed_attempts(
        AttemptFilter(host="you.example"), 99
    ) == len(range(8))


ATTEMPTS: Final[Sequence[tuple[dict[str, Any], list[int]]]] = (
    ({}, [20, 16, 12, 10, 0]),
    ({"is_delivered": True}, [20, 16, 10, 0]),
    ({"is_delivered": False}, [12]),
    ({"since": at(12)}, [20, 16, 12]),
    ({"until": at(12)}, [10, 0]),
    ({"since": at(9), "until": at(13)}, [12, 10]),
    ({"before": (at(16), Position(4))}, [16, 12, 10, 0]),
    ({"before": (at(16), Position(3))}, [12, 10, 0]),
    ({"position": Position(2)}, [10]),
)


async def test_attempts_are_found_by_outcome_and_time_straight_ones_too(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    subscription = await scene.subscribe(feed)
    for seconds in (0, 10):
        await scene.publish(feed)
        await scene.deliver(at(seconds))
    await scene.publish(feed)
    (chunk,) = await scene.claim(at(11))
    await scene.fail(chunk, subscription, when=at(12))
    attempts = []
    for seconds in (16, 20):
        caught_up = Attempt(
            subscription_id=subscription.id,
            position=Position(3),
            at=at(seconds),
            status=204,
            milliseconds=1,
            reason=AttemptReason.CATCH_UP,
        )
        attempts.append(caught_up)
    await scene.flush(attempts=tuple(attempts))

    attempts_of = scene.storage.deliveries.attempts
    for wanted, expected in ATTEMPTS:
        found = await attempts_of(subscription.id, 9, AttemptRange(**wanted))
        [last] = await attempts_of(subscription.id, 1, AttemptRange(**wanted))

        assert [each.at for each in found] == [at(each) for each in expected], wanted
        assert last == found[0]
    reasons = [each.reason for each in await attempts_of(subscription.id, 9)]
    assert reasons == [AttemptReason.CATCH_UP] * 2 + [AttemptReason.NEW_RECORD] * 3


FAILURES: Final[Sequence[tuple[AttemptFilter, list[int]]]] = (
    (AttemptFilter(), [0, 404, 503, 500]),
    (AttemptFilter(statuses=(500, 599)), [503, 500]),
    (AttemptFilter(statuses=(503, 503)), [503]),
    (AttemptFilter(statuses=(0, 0)), [0]),
    (AttemptFilter(statuses=(300, 599)), [404, 503, 500]),
    (AttemptFilter(host="b.example"), [0, 503]),
    (AttemptFilter(host="b.example", statuses=(500, 599)), [503]),
    (AttemptFilter(host="elsewhere.example"), []),
    (AttemptFilter(since=at(3)), [0, 404]),
    (AttemptFilter(since=at(2), statuses=(500, 599)), [503]),
    (AttemptFilter(until=at(3)), [503, 500]),
    (AttemptFilter(since=at(3), until=at(3)), []),
    (AttemptFilter(subscription_id=SubscriptionId(1)), [404, 500]),
    (AttemptFilter(subscription_id=SubscriptionId(2), since=at(3)), [0]),
)


async def test_failures_of_all_subscriptions_are_found_by_what_is_known_of_them(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    a, b = [await scene.subscribe(feed, name) for name in "ab"]
    of_a, of_b = details("a.example"), details("b.example")
    await scene.flush(
        attempts=(
            failed(a, at(1), status=500, kept=of_a),
            failed(b, at(2), status=503, kept=of_b),
            failed(a, at(3), status=404, kept=of_a),
            failed(b, at(4), status=0, kept=of_b),
        )
    )
    deliveries = scene.storage.deliveries
    for wanted, expected in FAILURES:
        found = await deliveries.failed_attempts(wanted, limit=9)

        assert [each.attempt.status for each in found] == expected, wanted
        assert all(each.attempt.details is None for each in found)
        for most in (1, 9):
            count = await deliveries.count_failed_attempts(wanted, most)
            assert count == min(len(expected), most), wanted


@pytest.mark.parametrize("count", [1, 501], ids=["few", "many"])
async def test_failures_are_found_by_the_topic_in_any_spelling(
    scene: Scene, count: int
) -> None:
    feed, other = await scene.add_feed(), await scene.add_feed("b")
    subscriptions = [await scene.subscribe(feed, f"{n}") for n in range(count)]
    wrong = await scene.subscribe(other)
    attempts = [failed(each, at(1)) for each in subscriptions]
    await scene.flush(attempts=(*attempts, failed(wrong, at(2))))
    deliveries = scene.storage.deliveries
    topic = subscriptions[0].topic
    for spelled in (topic, topic.replace("https://", "HTTPS://")):
        wanted = AttemptFilter(topic=spelled)
        found = await deliveries.failed_attempts(wanted, limit=count + 1)
        assert {each.topic for each in found} == {topic}
        assert await deliveries.count_failed_attempts(wanted, count + 1) == count
    nowhere = AttemptFilter(topic="https://nowhere.example/")
    assert await deliveries.failed_attempts(nowhere, limit=9) == []


async def test_pages_of_failures_follow_each_other_also_within_a_millisecond(
    scene: Scene,
) -> None:
    subscription = await scene.subscribe(await scene.add_feed())
    times = (1, 2, 2, 2, 3)
    await scene.flush(attempts=tuple(failed(subscription, at(each)) for each in times))
    met, before = [], None
    while page := await scene.storage.deliveries.failed_attempts(
        AttemptFilter(), limit=2, before=before
    ):
        met += [each.attempt.id for each in page]
        before = page[-1].attempt.at, page[-1].attempt.id
    assert met == [5, 4, 3, 2, 1]
