"""What went to callbacks at the first try, by chunks."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from storage.records import Attempt, AttemptRange, SentChunk
from tests.support.storage_scene import START, Scene, all_of, at, outcome_of


async def test_a_chunk_tells_how_many_took_it_and_how_fast(scene: Scene) -> None:
    feed = await scene.add_feed()
    subscriptions = [await scene.subscribe(feed, name) for name in "abc"]
    position = await scene.publish(feed)
    (chunk,) = await scene.claim(at(1))
    await scene.fail(chunk, subscriptions[1], when=at(1))
    await scene.flush(when=at(1), outcomes=all_of(chunk)[:1] + all_of(chunk)[2:])

    [sent] = await scene.storage.deliveries.sent_chunks(limit=9)

    assert (sent.feed_id, sent.position) == (feed.id, position)
    assert (sent.callbacks, sent.delivered) == (3, 2)
    assert sent.median_milliseconds == sent.slowest_milliseconds > 0


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, [4, 3, 2, 1]),
        ({"since": at(2)}, [4, 3, 2]),
        ({"until": at(2)}, [1]),
        ({"since": at(2), "until": at(4)}, [3, 2]),
    ],
    ids=str,
)
@pytest.mark.parametrize("is_of_one", [False, True], ids=["all", "of one feed"])
async def test_chunks_are_found_by_time_and_feed_page_by_page(
    scene: Scene, wanted: dict[str, Any], expected: list[int], is_of_one: bool
) -> None:
    feed, other = await scene.add_feed(), await scene.add_feed("b")
    for each in (feed, other):
        await scene.subscribe(each)
    for seconds in range(1, 5):
        await scene.publish(feed)
        await scene.deliver(at(seconds))
    if is_of_one:
        await scene.publish(other)
        await scene.deliver(at(3))
        wanted = {**wanted, "feed_id": feed.id}
    met, before = list[SentChunk](), None
    while page := await scene.storage.deliveries.sent_chunks(
        limit=2, before=before, **wanted
    ):
        met += page
        before = page[-1].id
    assert [each.at for each in met] == [at(seconds) for seconds in expected]


async def test_each_delivery_is_told_with_its_own_time(scene: Scene) -> None:
    feed = await scene.add_feed()
    subscriptions = [await scene.subscribe(feed, name) for name in "abcd"]
    position = await scene.publish(feed)
    (chunk,) = await scene.claim(at(1))
    first, second, third, fourth = (index for index, _ in chunk.pending)
    quick, slow = outcome_of(chunk, first, when=at(1.25)), at(2.5)
    await scene.flush(when=at(1.3), outcomes=(quick,))
    last = [
        outcome_of(chunk, second, when=slow),
        outcome_of(chunk, third, when=at(9)),  # of a clock that was set back since
        outcome_of(chunk, fourth),  # as by a former version
    ]
    await scene.flush(when=at(3), outcomes=last)
    deliveries = scene.storage.deliveries

    told = [await deliveries.attempts(each.id, 9) for each in subscriptions]

    assert [(one.at, one.is_exact) for (one,) in told] == [
        (at(1.25), True),
        (slow, True),
        (at(3), True),
        (at(3), False),
    ]
    within = [
        AttemptRange(since=at(1.25), until=at(1.26)),
        AttemptRange(since=at(1.26)),
        AttemptRange(before=(at(1.25), position)),
    ]
    first_id = subscriptions[0].id
    found = [await deliveries.attempts(first_id, 9, each) for each in within]
    assert [len(each) for each in found] == [1, 0, 0]
    successes = await deliveries.first_successes([(feed.id, position)])
    assert successes == {position: at(1.25)}


async def test_the_latest_requests_are_those_of_chunks_and_those_of_their_own(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    first, second = [await scene.subscribe(feed, name) for name in "ab"]
    for seconds in (1, 3):
        await scene.publish(feed)
        await scene.deliver(at(seconds))
    await scene.publish(feed)
    (chunk,) = await scene.claim(at(5))
    await scene.fail(chunk, second, when=at(5))
    caught_up = Attempt(
        subscription_id=second.id,
        position=chunk.record.position,
        at=at(7),
        status=204,
        milliseconds=40,
    )
    await scene.flush(when=at(7), attempts=(caught_up,))
    deliveries = scene.storage.deliveries

    async def told(
        until: float, chunks: int, attempts: int
    ) -> tuple[list[tuple[int, float, int, bool]], datetime | None]:
        found = await deliveries.latest_requests(
            at(until), chunks=chunks, attempts=attempts
        )
        requests = [
            (
                each.subscription_id,
                (each.at - START).total_seconds(),
                each.milliseconds,
                each.is_delivered,
            )
            for each in found.requests
        ]
        return requests, found.since

    noted = [(second.id, 7, 40, True), (first.id, 5, 12, True)]
    noted += [(second.id, 5, 30, False)]
    both = [(first.id, 3, 12, True), (second.id, 3, 12, True)]
    requests, since = await told(8, 9, 9)
    assert requests[:3] == noted
    assert sorted(requests[3:5]) == both
    assert (len(requests), since) == (7, None)
    requests, since = await told(7, 2, 9)
    assert requests[:2] == noted[1:]
    assert sorted(requests[2:]) == both
    assert since == at(3)
    assert (await told(8, 9, 1))[1] == at(7)
    assert await told(1, 9, 9) == ([], None)
