"""What the dispatcher promises when callbacks fail, hang or are gone."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from pathlib import Path
from typing import cast

import orjson
import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from hub.delivery.dispatcher import DeliveryLimits
from hub.runtime.node_membership import NodeMembership
from protocols.model import Entry, Status
from storage.contract import MembershipStore, Storage
from storage.errors import StorageFull
from storage.records import (
    FeedId,
    FetchCommit,
    Format,
    NewNode,
    NodeTerm,
    Polling,
    Position,
    RecordKind,
    RecordWrite,
    Subscription,
    SubscriptionState,
)
from tests.support.clock import ManualClock
from tests.support.delivery_scene import DeliveryScene, delivery_scene
from tests.support.http_server import ServerAnswer
from tests.support.storage_scene import stored_at
from tests.support.waiting import eventually


async def settled(scene: DeliveryScene) -> None:
    await eventually(scene.is_settled)


async def is_split(scene: DeliveryScene) -> bool:
    """Whether all news have found their subscriptions."""
    backlog = await scene.storage.backlog()
    return not (backlog.fanouts or backlog.chunks)


async def until_waiting(scene: DeliveryScene, subscription: Subscription) -> None:
    """Until its retry is nobody's: its last failure is written."""

    async def is_waiting() -> bool:
        retrying = await scene.storage.deliveries.retrying_subscription(subscription.id)
        return retrying is not None and retrying.lease_id == 0

    await eventually(is_waiting)


async def test_hanging_callbacks_hold_up_nobody_else(tmp_path: Path) -> None:
    async with delivery_scene(tmp_path) as scene, scene.dispatching():
        feed = await scene.add_feed()
        for number in range(100):
            await scene.subscribe(feed, str(number))
            if number % 20 == 0:
                scene.subscribers[str(number)].answer(ServerAnswer(silent=True))
        healthy = [str(number) for number in range(100) if number % 20]
        for count in range(1, 4):
            started = time.monotonic()
            await scene.publish(feed)
            await scene.subscribers.until(
                lambda count=count: all(  # type: ignore[misc]  # bound at once
                    len(scene.subscribers[name].receipts) >= count for name in healthy
                )
            )
            assert time.monotonic() - started < 2.0


async def test_what_waits_in_a_chunk_is_not_sent_once_its_subscription_has_ended(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    limits = DeliveryLimits(requests=1, grace=0.1)
    async with delivery_scene(tmp_path, clock=clock, limits=limits) as scene:
        feed = await scene.add_feed()
        await scene.subscribe(feed, "first")
        ended = await scene.subscribe(feed, "ended")
        await scene.subscribe(feed, "last")
        scene.subscribers["first"].answer(ServerAnswer(silent=True))
        async with scene.dispatching():
            await scene.publish(feed)
            await scene.subscribers.until_count("first", 1)  # and the others wait
            await scene.storage.subscriptions.end(
                ended.id, "unsubscribed", clock.now(), tell=False
            )
            clock.advance(1.1)
            await scene.subscribers.until_count("last", 1)
            assert len(scene.subscribers["ended"].receipts) == 0
            await eventually(lambda: _has_no_chunks(scene))


async def _has_no_chunks(scene: DeliveryScene) -> bool:
    return not (await scene.storage.backlog()).chunks


async def test_a_slow_callback_that_answers_gets_everything_in_order(
    tmp_path: Path,
) -> None:
    async with delivery_scene(tmp_path) as scene, scene.dispatching():
        feed = await scene.add_feed()
        await scene.subscribe(feed, "slow")
        scene.subscribers["slow"].answer(ServerAnswer(delay=1.3), ServerAnswer())
        for number in range(3):
            await scene.publish(feed, f"Entry {number}")
        await scene.subscribers.until_count("slow", 3)
        await settled(scene)
        assert scene.subscribers["slow"].titles == [
            f"Entry {number}" for number in range(3)
        ]
        assert scene.subscribers["slow"].most_open == 1


async def test_beyond_the_slow_lane_a_hanging_request_is_cut_short(
    tmp_path: Path,
) -> None:
    limits = DeliveryLimits(hanging=1, grace=0.1)
    async with delivery_scene(tmp_path, limits=limits) as scene, scene.dispatching():
        feed = await scene.add_feed()
        subscriptions = []
        for name in ("1", "2"):
            subscriptions.append(await scene.subscribe(feed, name))
            scene.subscribers[name].answer(ServerAnswer(silent=True))
        await scene.publish(feed)
        store = scene.storage.deliveries

        async def attempts() -> list[int]:
            both = [
                await store.retrying_subscription(each.id) for each in subscriptions
            ]
            return sorted(each.attempts for each in both if each is not None)

        async def one_failed() -> bool:
            return await attempts() == [0, 1]

        await eventually(one_failed)


async def test_a_batch_is_the_same_notification_over_retries(tmp_path: Path) -> None:
    clock = ManualClock()
    async with delivery_scene(tmp_path, clock=clock) as scene, scene.dispatching():
        feed = await scene.add_feed()
        subscription = await scene.subscribe(feed, "a", batch=True)
        refused, taken = ServerAnswer(status=500), ServerAnswer()
        scene.subscribers["a"].answer(refused, taken, refused, taken)
        await scene.publish(feed, "1")
        await until_waiting(scene, subscription)
        await scene.publish(feed, "2")
        await scene.publish(feed, "3")
        clock.advance(6.1)
        await scene.subscribers.until_count("a", 3)  # 1; again 1; 2 and 3
        await until_waiting(scene, subscription)
        await scene.publish(feed, "4")
        clock.advance(6.1)
        await settled(scene)
        requests = scene.subscribers["a"].deliveries
        told = [
            [item["title"] for item in orjson.loads(each.body)["items"]]
            for each in requests
        ]
        assert told == [["1"], ["1"], ["2", "3"], ["2", "3"], ["4"]]
        assert requests[0].body == requests[1].body
        assert requests[2].body == requests[3].body
        ids = [each.headers["webhook-id"] for each in requests]
        assert ids[0] == ids[1] != ids[2] == ids[3] != ids[4]


async def test_a_batch_is_the_same_notification_after_a_crash(tmp_path: Path) -> None:
    clock = ManualClock()
    limits = DeliveryLimits(grace=0.0)
    async with delivery_scene(tmp_path, clock=clock, limits=limits) as scene:
        feed = await scene.add_feed()
        subscription = await scene.subscribe(feed, "a", batch=True)
        scripts = ServerAnswer(status=500), ServerAnswer(), ServerAnswer(silent=True)
        scene.subscribers["a"].answer(*scripts)
        async with scene.dispatching():
            await scene.publish(feed, "1")
            await until_waiting(scene, subscription)
            await scene.publish(feed, "2")
            await scene.publish(feed, "3")
            await scene.storage.deliveries.retry_now(subscription.id, clock.now())
            await scene.subscribers.until_count("a", 3)  # 2 and 3, and is cut off
        scene.subscribers["a"].answer(ServerAnswer())
        await scene.publish(feed, "4")
        async with scene.dispatching():
            await settled(scene)
        assert scene.subscribers["a"].titles == ["1", "1", "2", "3", "2", "3", "4"]
        ids = [each.headers["webhook-id"] for each in scene.subscribers["a"].deliveries]
        assert ids[0] == ids[1] != ids[2] == ids[3] != ids[4]


async def test_a_failed_delivery_is_tried_again_and_the_rest_follows_in_order(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with delivery_scene(tmp_path, clock=clock) as scene, scene.dispatching():
        feed = await scene.add_feed()
        subscription = await scene.subscribe(feed, "a")
        scene.subscribers["a"].answer(ServerAnswer(status=500), ServerAnswer())
        await scene.publish(feed, "First")
        await until_waiting(scene, subscription)
        await scene.publish(feed, "Second")
        clock.advance(3.9)
        assert len(scene.subscribers["a"].receipts) == 1
        clock.advance(2.2)
        await settled(scene)
        assert scene.subscribers["a"].titles == ["First", "First", "Second"]
        attempts = await scene.storage.deliveries.attempts(subscription.id, 10)
        assert [each.status for each in attempts] == [200, 200, 500]


async def test_a_restart_keeps_the_retries(tmp_path: Path) -> None:
    clock = ManualClock()
    async with delivery_scene(tmp_path, clock=clock) as scene:
        feed = await scene.add_feed()
        subscription = await scene.subscribe(feed, "a")
        scene.subscribers["a"].answer(ServerAnswer(status=500), ServerAnswer())
        async with scene.dispatching():
            await scene.publish(feed, "First")
            await until_waiting(scene, subscription)
        clock.advance(10)
        async with scene.dispatching():
            await settled(scene)
        assert scene.subscribers["a"].titles == ["First", "First"]


async def test_retry_after_is_honoured(tmp_path: Path) -> None:
    clock = ManualClock()
    async with delivery_scene(tmp_path, clock=clock) as scene, scene.dispatching():
        feed = await scene.add_feed()
        subscription = await scene.subscribe(feed, "a")
        scene.subscribers["a"].answer(
            ServerAnswer(status=503, headers={"Retry-After": "90"})
        )
        await scene.publish(feed)
        await until_waiting(scene, subscription)
        retrying = await scene.storage.deliveries.retrying_subscription(subscription.id)
        assert retrying is not None
        assert retrying.next_try == clock.now() + timedelta(seconds=90)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_a_failure_and_not_followed(
    tmp_path: Path, status: int
) -> None:
    async with delivery_scene(tmp_path) as scene, scene.dispatching():
        feed = await scene.add_feed()
        subscription = await scene.subscribe(feed, "a")
        elsewhere = {"Location": scene.subscribers["elsewhere"].url}
        scene.subscribers["a"].answer(ServerAnswer(status=status, headers=elsewhere))
        await scene.publish(feed)
        await until_waiting(scene, subscription)
        assert scene.subscribers.asked == ["/a"]


async def test_a_reset_connection_is_a_failure(tmp_path: Path) -> None:
    async with delivery_scene(tmp_path) as scene, scene.dispatching():
        feed = await scene.add_feed()
        subscription = await scene.subscribe(feed, "a")
        scene.subscribers["a"].answer(ServerAnswer(raw=b"", resets=True))
        await scene.publish(feed)
        await until_waiting(scene, subscription)
        retrying = await scene.storage.deliveries.retrying_subscription(subscription.id)
        assert retrying is not None
        assert retrying.last_status == 0
        assert retrying.last_error


async def test_410_ends_the_subscription(tmp_path: Path) -> None:
    async with delivery_scene(tmp_path) as scene, scene.dispatching():
        feed = await scene.add_feed()
        subscription = await scene.subscribe(feed, "a")
        scene.subscribers["a"].answer(ServerAnswer(status=410))
        await scene.publish(feed)
        await scene.subscribers.until_count("a", 1)
        await settled(scene)
        await scene.publish(feed)
        await settled(scene)
        ended = await scene.storage.subscriptions.get(subscription.id)
        assert ended is not None
        assert ended.state is SubscriptionState.ENDED
        assert len(scene.subscribers["a"].receipts) == 1


async def exhaust(
    scene: DeliveryScene, clock: ManualClock, subscription: Subscription
) -> None:
    """Let all tries fail."""
    store = scene.storage.deliveries
    for number in range(1, 11):
        await scene.subscribers.until_count("a", number)
        await until_waiting(scene, subscription)
        retrying = await store.retrying_subscription(subscription.id)
        assert retrying is not None
        assert retrying.attempts == number
        clock.advance((retrying.next_try - clock.now()).total_seconds())
    await scene.subscribers.until_count("a", 11)
    await settled(scene)


async def test_after_eleven_tries_the_range_is_dead_and_each_record_is_one_probe(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with delivery_scene(tmp_path, clock=clock) as scene, scene.dispatching():
        store = scene.storage.deliveries
        feed = await scene.add_feed()
        subscription = await scene.subscribe(feed, "a")
        scene.subscribers["a"].answer(ServerAnswer(status=500))
        first = await scene.publish(feed, "First")
        await until_waiting(scene, subscription)
        second = await scene.publish(feed, "Second")
        await exhaust(scene, clock, subscription)
        (dead,) = await store.dead_letters(after=0, limit=10)
        assert (dead.first, dead.last) == (first, second)
        assert dead.reason == "answered 500 (after 11 tries)"

        third = await scene.publish(feed, "Third")
        await scene.subscribers.until_count("a", 12)
        await settled(scene)
        ranges = await store.dead_letters(after=0, limit=10)
        assert ranges[-1].last == third

        scene.subscribers["a"].answer(ServerAnswer())
        await scene.publish(feed, "Fourth")
        await scene.subscribers.until_count("a", 13)
        await settled(scene)
        back = await scene.storage.subscriptions.get(subscription.id)
        assert back is not None
        assert not back.exhausted
        assert back.state is SubscriptionState.ACTIVE


async def test_news_for_a_failing_callback_is_a_try_of_its_own_and_brings_all(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with delivery_scene(tmp_path, clock=clock) as scene, scene.dispatching():
        store = scene.storage.deliveries
        feed = await scene.add_feed()
        subscription = await scene.subscribe(feed, "a")
        scene.subscribers["a"].answer(ServerAnswer(status=500))
        await scene.publish(feed, "First")
        for number in range(1, 6):
            await scene.subscribers.until_count("a", number)
            await until_waiting(scene, subscription)
            retrying = await store.retrying_subscription(subscription.id)
            assert retrying is not None
            if number < 5:
                clock.advance((retrying.next_try - clock.now()).total_seconds())

        clock.advance(9.0)  # of five minutes
        await scene.publish(feed, "Second")
        await eventually(lambda: is_split(scene))
        assert await store.retrying_subscription(subscription.id) == retrying
        assert len(scene.subscribers["a"].receipts) == 5

        clock.advance(1.0)
        await scene.publish(feed, "Third")
        await scene.subscribers.until_count("a", 6)
        await until_waiting(scene, subscription)
        assert await store.retrying_subscription(subscription.id) == retrying

        clock.advance(10.0)
        scene.subscribers["a"].answer(ServerAnswer())
        await scene.publish(feed, "Fourth")
        await settled(scene)
        assert scene.subscribers["a"].titles[-4:] == [
            "First",
            "Second",
            "Third",
            "Fourth",
        ]


async def test_retrying_a_dead_letter_sends_exactly_that_range(tmp_path: Path) -> None:
    clock = ManualClock()
    async with delivery_scene(tmp_path, clock=clock) as scene, scene.dispatching():
        store = scene.storage.deliveries
        feed = await scene.add_feed()
        subscription = await scene.subscribe(feed, "a")
        scene.subscribers["a"].answer(ServerAnswer(status=500))
        await scene.publish(feed, "First")
        await until_waiting(scene, subscription)
        await scene.publish(feed, "Second")
        await exhaust(scene, clock, subscription)
        scene.subscribers["a"].answer(ServerAnswer())
        await scene.publish(feed, "Third")
        await scene.subscribers.until_count("a", 12)
        await settled(scene)
        (dead,) = await store.dead_letters(after=0, limit=10)
        await store.retry_dead_letter(dead.id, clock.now())
        await scene.subscribers.until_count("a", 14)
        await settled(scene)
        assert scene.subscribers["a"].titles[-3:] == ["Third", "First", "Second"]
        assert await store.dead_letters(after=0, limit=10) == []


async def test_batch_subscribers_catch_up_in_one_request_after_the_repeated_one(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with delivery_scene(tmp_path, clock=clock) as scene, scene.dispatching():
        feed = await scene.add_feed()
        subscription = await scene.subscribe(feed, "a", batch=True)
        scene.subscribers["a"].answer(ServerAnswer(status=500), ServerAnswer())
        await scene.publish(feed, "1")
        await until_waiting(scene, subscription)
        for number in range(2, 6):
            await scene.publish(feed, str(number))
        clock.advance(6)
        await settled(scene)
        assert scene.subscribers["a"].titles == ["1", "1", "2", "3", "4", "5"]
        assert len(scene.subscribers["a"].receipts) == 3


async def test_an_as_is_retry_gets_only_the_latest(tmp_path: Path) -> None:
    clock = ManualClock()
    async with delivery_scene(tmp_path, clock=clock) as scene, scene.dispatching():
        feed = await scene.add_feed()
        subscription = await scene.subscribe(feed, "a", format=Format.AS_IS)
        scene.subscribers["a"].answer(ServerAnswer(status=500), ServerAnswer())
        for number in range(1, 4):
            entry = Entry(key=f"{number}", id=f"{number}")
            document = ("text/xml", b"<%d/>" % number)
            await scene.commit(feed, RecordKind.ENTRIES, [entry], document=document)
            await until_waiting(scene, subscription)
        clock.advance(6)
        await settled(scene)
        bodies = [each.body for each in scene.subscribers["a"].deliveries]
        assert bodies == [b"<1/>", b"<3/>"]


async def test_an_ended_subscription_gets_nothing_more(tmp_path: Path) -> None:
    clock = ManualClock()
    async with delivery_scene(tmp_path, clock=clock) as scene, scene.dispatching():
        feed = await scene.add_feed()
        subscription = await scene.subscribe(feed, "a")
        scene.subscribers["a"].answer(ServerAnswer(status=500), ServerAnswer())
        await scene.publish(feed)
        await until_waiting(scene, subscription)
        await scene.storage.subscriptions.end(
            subscription.id, "removed", clock.now(), tell=False
        )
        clock.advance(10)
        await scene.publish(feed)
        await settled(scene)
        assert len(scene.subscribers["a"].receipts) == 1


async def fall_behind(
    scene: DeliveryScene, clock: ManualClock, records: int, delay: float = 0.1
) -> Subscription:
    """A subscription with so many records to catch up, each answered after a delay."""
    feed = await scene.add_feed()
    subscription = await scene.subscribe(feed, "a")
    scene.subscribers["a"].answer(ServerAnswer(status=500), ServerAnswer(delay=delay))
    await scene.publish(feed)
    await until_waiting(scene, subscription)
    for _ in range(records - 1):
        await scene.publish(feed)
    clock.advance(10)
    return subscription


async def test_days_to_catch_up_do_not_hold_up_one_with_a_single_record(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    limits = DeliveryLimits(catch_ups=1)
    async with delivery_scene(tmp_path, clock=clock, limits=limits) as scene:
        async with scene.dispatching():
            other = await scene.add_feed(2)
            late = await scene.subscribe(other, "late")
            scene.subscribers["late"].answer(ServerAnswer(status=500), ServerAnswer())
            await fall_behind(scene, clock, records=80, delay=0.03)
            await scene.subscribers.until_count("a", 3)  # it has the only place
            await scene.publish(other)
            await until_waiting(scene, late)
            clock.advance(10)
            await scene.subscribers.until_count("late", 2)
            assert len(scene.subscribers["a"].receipts) < 80
            await settled(scene)
        expected = [f"Entry {number}" for number in range(1, 81)]
        assert scene.subscribers["a"].titles[1:] == expected


@pytest.mark.parametrize("delay", [0.05, 0.3], ids=["within a flush", "of several"])
async def test_ending_a_subscription_ends_its_catch_up(
    tmp_path: Path, delay: float
) -> None:
    clock = ManualClock()
    async with delivery_scene(tmp_path, clock=clock) as scene, scene.dispatching():
        subscription = await fall_behind(scene, clock, records=30, delay=delay)
        await scene.subscribers.until_count("a", 3)
        await scene.storage.subscriptions.end(
            subscription.id, "removed", clock.now(), tell=False
        )
        await settled(scene)
        ended = len(scene.subscribers["a"].receipts)
        await asyncio.sleep(3 * delay)  # time for what must not come
        assert len(scene.subscribers["a"].receipts) <= ended + 1
    assert len(scene.subscribers["a"].receipts) < 10


async def test_whoever_loses_the_lease_sends_nothing_more(tmp_path: Path) -> None:
    clock = ManualClock()
    async with delivery_scene(tmp_path, clock=clock) as scene, scene.dispatching():
        await fall_behind(scene, clock, records=12, delay=0.3)
        await scene.subscribers.until_count("a", 4)
        clock.advance(120)  # as if nothing could be written for so long
        await settled(scene)
        assert scene.subscribers["a"].most_open <= 2  # the one that was under way
    told = [
        int(each.headers["webhook-id"].split("-")[1])
        for each in scene.subscribers["a"].deliveries
    ]
    assert sorted(set(told)) == list(range(1, 13))
    assert len(told) <= 12 + 2  # the refused one, and the one under way


async def test_a_document_that_is_not_kept_is_given_up_and_not_skipped(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with delivery_scene(tmp_path, clock=clock) as scene, scene.dispatching():
        feed = await scene.add_feed()
        subscription = await scene.subscribe(feed, "a")
        scene.subscribers["a"].answer(ServerAnswer(status=500), ServerAnswer())
        position = await scene.publish(feed)
        await until_waiting(scene, subscription)
        await scene.subscribe(feed, "a", format=Format.AS_IS)
        clock.advance(10)
        await settled(scene)
        [dead] = await scene.storage.deliveries.dead_letters(after=0, limit=10)
    assert (dead.first, dead.last) == (position, position)
    assert dead.reason == "the document is not kept"


async def test_who_becomes_as_is_begins_with_the_next_document_and_is_not_to_blame(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with delivery_scene(tmp_path, clock=clock) as scene, scene.dispatching():
        feed = await scene.add_feed()
        subscription = await scene.subscribe(feed, "a")
        scene.subscribers["a"].answer(
            ServerAnswer(status=500), ServerAnswer(status=500), ServerAnswer()
        )
        await scene.publish(feed)
        await until_waiting(scene, subscription)
        await scene.subscribe(feed, "a", format=Format.AS_IS)
        clock.advance(10)
        await settled(scene)
        [lost] = await scene.storage.deliveries.dead_letters(after=0, limit=10)
        raw = ("text/plain", b"the next one")
        await scene.commit(feed, RecordKind.ENTRIES, [], document=raw)
        await until_waiting(scene, subscription)  # as after the first try of a good one
        clock.advance(10)
        await scene.subscribers.until_count("a", 3)
        await settled(scene)
        await scene.storage.deliveries.retry_dead_letter(lost.id, clock.now())
        await scene.subscribers.until_count("a", 4)
        await settled(scene)
        assert await scene.storage.deliveries.dead_letters(after=0, limit=10) == []
    assert [each.body for each in scene.subscribers["a"].deliveries[1:]] == [raw[1]] * 3


async def test_a_catch_up_goes_on_after_a_restart_where_it_stopped(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with delivery_scene(tmp_path, clock=clock) as scene:
        async with scene.dispatching():
            subscription = await fall_behind(scene, clock, records=12)
            await scene.subscribers.until_count("a", 4)
        retrying = await scene.storage.deliveries.retrying_subscription(subscription.id)
        assert retrying is not None
        assert retrying.lease_id == 0
        async with scene.dispatching():
            await settled(scene)
        expected = [f"Entry {number}" for number in range(1, 13)]
        assert scene.subscribers["a"].titles[1:] == expected


async def test_stopping_lets_requests_end_and_keeps_what_came_of_them(
    tmp_path: Path,
) -> None:
    async with delivery_scene(tmp_path) as scene:
        feed = await scene.add_feed()
        await scene.subscribe(feed, "a")
        scene.subscribers["a"].answer(ServerAnswer(delay=0.5))
        async with scene.dispatching():
            await scene.publish(feed)
            await scene.subscribers.until_count("a", 1)
        assert await scene.is_settled()
        async with scene.dispatching():
            await scene.publish(feed)
            await scene.subscribers.until_count("a", 2)
        assert len(scene.subscribers["a"].deliveries) == 2


async def test_stopping_waits_no_longer_than_the_grace(tmp_path: Path) -> None:
    limits = DeliveryLimits(grace=0.2)
    async with delivery_scene(tmp_path, limits=limits) as scene:
        feed = await scene.add_feed()
        await scene.subscribe(feed, "a")
        scene.subscribers["a"].answer(ServerAnswer(silent=True), ServerAnswer())
        async with scene.dispatching():
            await scene.publish(feed, "First")
            await scene.subscribers.until_count("a", 1)
            started = time.monotonic()
        assert time.monotonic() - started < 2.0
        async with scene.dispatching():
            await settled(scene)
        assert scene.subscribers["a"].titles == ["First", "First"]


@pytest.mark.parametrize("batch", [False, True])
async def test_a_record_that_cannot_be_rendered_is_given_up_and_harms_no_other(
    tmp_path: Path, batch: bool
) -> None:
    async with delivery_scene(tmp_path) as scene:
        odd, other = await scene.add_feed(1), await scene.add_feed(2)
        await scene.subscribe(odd, "odd", batch=batch)
        await scene.subscribe(other, "other")
        before = await scene.publish(odd, "before")
        broken = await publish_broken(scene, odd)
        await scene.publish(other, "elsewhere")
        with capture_logs() as lines:
            async with scene.dispatching():
                await settled(scene)
                await scene.publish(odd, "after")
                await settled(scene)
        [dead] = await scene.storage.deliveries.dead_letters(after=0, limit=10)
    assert (dead.first, dead.last) == (before + 1, broken)
    assert dead.reason == "the hub could not render the notification"
    assert scene.subscribers["odd"].titles == ["before", "after"]
    assert scene.subscribers["other"].titles == ["elsewhere"]
    failures = [each for each in lines if each["event"] == "record_not_rendered"]
    assert {(each["position"], each["exc_info"]) for each in failures} == {
        (broken, True)
    }


async def publish_broken(scene: DeliveryScene, feed_id: FeedId) -> Position:
    """A record of an entry that nobody can read."""
    now = scene.clock.now()
    committing = scene.storage.log.commit(
        FetchCommit(
            feed_id=feed_id,
            at=now,
            next_fetch=now,
            polling=Polling(),
            entries=(Entry(key="odd", id=5),),  # type: ignore[arg-type]
            records=(
                RecordWrite(
                    kind=RecordKind.ENTRIES,
                    status=Status(code=200),
                    entries=(("odd", True),),
                ),
            ),
        )
    )
    (position,) = await stored_at(committing)
    return position


class Delegating:
    """Passes on whatever it does not do itself."""

    def __init__(self, inner: object) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


class LateMembership(Delegating):
    """Takes no writes at first."""

    failures = 1

    async def join(self, node: NewNode) -> NodeTerm:
        if self.failures:
            self.failures -= 1
            raise StorageFull("the database cannot be written")
        return await cast("MembershipStore", self._inner).join(node)


class BriefMembership(Delegating):
    """Gives a term of 15 s."""

    async def join(self, node: NewNode) -> NodeTerm:
        term = await cast("MembershipStore", self._inner).join(node)
        return replace(term, seconds=15.0)


class BriefStorage(Delegating):
    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.membership = BriefMembership(inner.membership)


class LateStorage(Delegating):
    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.membership = LateMembership(inner.membership)


async def test_a_hub_that_begins_on_a_full_disk_delivers_once_there_is_room(
    tmp_path: Path,
) -> None:
    async with delivery_scene(tmp_path) as scene:
        late = LateStorage(scene.storage)
        scene.storage = cast("Storage", late)
        async with scene.dispatching():
            feed = await scene.add_feed()
            await scene.subscribe(feed, "a")
            await scene.publish(feed, "First")
            await scene.subscribers.until_count("a", 1)
            await settled(scene)
        assert late.membership.failures == 0


async def test_nothing_begins_when_others_may_have_taken_over(tmp_path: Path) -> None:
    async with delivery_scene(tmp_path) as scene:
        seconds, asked = 0.0, 0

        def monotonic() -> float:
            nonlocal asked
            asked += 1
            return seconds

        brief = cast("Storage", BriefStorage(scene.storage))
        membership = NodeMembership(brief, monotonic=monotonic)
        feed = await scene.add_feed()
        await scene.subscribe(feed, "a")
        await membership.join()
        seconds = 14.5
        async with scene.dispatching(membership):
            await scene.publish(feed, "First")
            before = asked
            await eventually(lambda: asked > before + 1)  # and was told no
            assert scene.subscribers["a"].receipts == []

            seconds = 13.5
            await scene.subscribers.until_count("a", 1)
            await settled(scene)
