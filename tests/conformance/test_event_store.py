"""Operational events, on every engine: queued with what brings them about, and told in
the log."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from protocols.operational_events import EventType
from storage.records import (
    OPERATOR,
    FeedState,
    NewDeadLetter,
    OperationalEvent,
    Position,
    Record,
    RecordKind,
    RetryMoved,
    StoredFeed,
    Subscription,
)
from tests.support.storage_scene import START, Scene, all_of, at, fetch

EVERYTHING = "events:*"
FAILING = EventType.SUBSCRIPTION_FAILING
DISK = OperationalEvent(
    type=EventType.HUB_DISK, at=START, condition="disk", reason="it is full"
)


async def subscribe_operator(scene: Scene, topic: str = EVERYTHING) -> Subscription:
    feed = await scene.storage.events.topic(topic, START)
    return await scene.subscribe(
        feed, "operator", topic=topic, account=OPERATOR, secret="whsec_c2VjcmV0"
    )


async def published(scene: Scene, *, after: int = 0) -> list[Record]:
    """What the log tells of events once all that is queued was published."""
    while await scene.storage.events.publish(at(60), 9):
        pass
    records = await scene.storage.log.records(after=Position(after), limit=99)
    return [each for each in records if each.kind is RecordKind.EVENT]


async def events_of(scene: Scene) -> list[OperationalEvent]:
    return [each.event for each in await published(scene) if each.event is not None]


async def types_of(scene: Scene) -> list[EventType]:
    return [each.type for each in await events_of(scene)]


async def try_again(
    scene: Scene, when: datetime, status: int, *, attempts: int = 0, **more: Any
) -> None:
    """The retry that is due is tried, and answered so."""
    (claimed,) = await scene.claim_retrying(when)
    moved = RetryMoved(
        subscription_id=claimed.subscription.id,
        lease_id=claimed.lease_id,
        position=Position(claimed.position + (status == 200)),
        attempts=attempts,
        next_try=when + timedelta(seconds=5),
        last_status=status,
        last_error="" if status == 200 else f"answered {status}",
        release=True,
        **more,
    )
    recovered = (claimed.subscription.id,) if status == 200 else ()
    await scene.flush(when=when, moved=(moved,), recovered=recovered)


def failing_feed(feed: StoredFeed) -> OperationalEvent:
    return OperationalEvent(
        type=EventType.FEED_FAILING,
        at=START,
        subject=feed.id,
        url=feed.url,
        since=START,
        reason="answered 503",
        code=503,
    )


async def test_what_a_fetch_brings_about_is_told_in_the_log(scene: Scene) -> None:
    feed = await scene.add_feed()
    operator = await subscribe_operator(scene)
    event = failing_feed(feed)

    await scene.storage.log.commit(fetch(feed, events=(event,)))

    (record,) = await published(scene)
    assert (record.event, record.feed_id) == (event, operator.feed_id)
    assert record.at == at(60)  # when the log has it, so that no flood seems late
    (chunk,) = await scene.claim()
    assert chunk.record == record
    assert [member.id for _, member in chunk.pending] == [operator.id]
    assert (await scene.storage.log.end()).position == record.position


@pytest.mark.parametrize("was_subscribed", [False, True])
async def test_nothing_is_queued_while_nobody_subscribes(
    scene: Scene, was_subscribed: bool
) -> None:
    feed = await scene.add_feed()
    if was_subscribed:
        operator = await subscribe_operator(scene)
        await scene.storage.subscriptions.end(operator.id, "over", START, tell=False)
    late = await scene.subscribe_retrying(feed)
    await try_again(scene, at(5), 500, attempts=2)
    await scene.storage.log.commit(fetch(feed, events=(failing_feed(feed),)))
    await scene.storage.subscriptions.end(late.id, "over", START, tell=False)
    await scene.storage.events.note_conditions([DISK], START)

    await subscribe_operator(scene)

    assert await scene.storage.events.publish(START, 9) == 0
    assert await published(scene) == []


async def test_a_topic_is_told_what_it_takes(scene: Scene) -> None:
    feed = await scene.add_feed()
    disk = await scene.storage.events.topic("events:hub.disk", START)
    feeds = await scene.storage.events.topic("events:feed.*", START)
    every = await scene.storage.events.topic(EVERYTHING, START)
    for number, topic in enumerate((disk, feeds, every)):
        await scene.subscribe(topic, str(number), topic=topic.url)

    await scene.storage.log.commit(fetch(feed, events=(failing_feed(feed),)))

    told = [each.feed_id for each in await published(scene)]
    assert told == [feeds.id, every.id]


async def test_an_event_that_no_topic_takes_is_dropped(scene: Scene) -> None:
    feed = await scene.add_feed()
    await subscribe_operator(scene, "events:hub.disk")
    await scene.storage.log.commit(fetch(feed, events=(failing_feed(feed),)))

    assert await scene.storage.events.publish(START, 9) == 1
    assert await scene.storage.events.publish(START, 9) == 0
    assert await published(scene) == []


async def test_a_flood_of_events_waits_behind_what_is_not_yet_split(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    operator = await subscribe_operator(scene)
    for _ in range(3):
        many = tuple(failing_feed(feed) for _ in range(40))
        await scene.storage.log.commit(fetch(feed, events=many))

    taken = [await scene.storage.events.publish(START, 30) for _ in range(4)]

    assert taken == [30, 20, 0, 0]
    assert (await scene.storage.backlog()).fanouts == 50
    await scene.deliver()
    assert await scene.storage.events.publish(START, 30) == 30
    assert operator.feed_id in {each.feed_id for each in await published(scene)}


async def test_events_of_the_hub_wait_behind_no_flood(scene: Scene) -> None:
    """Though as many wait to be split as may; and others go on beside many of them."""
    feed = await scene.add_feed()
    await subscribe_operator(scene)
    many = tuple(failing_feed(feed) for _ in range(60))
    await scene.storage.log.commit(fetch(feed, events=many))
    await scene.storage.events.publish(START, 50)
    await scene.storage.events.note_conditions([DISK], START)

    assert await scene.storage.events.publish(START, 50) == 1

    records = await scene.storage.log.records(after=Position(0), limit=99)
    assert records[-1].event == DISK
    await scene.deliver()
    holding = [replace(DISK, condition=f"disk {number}") for number in range(9)]
    await scene.storage.events.note_conditions(holding, START)
    await scene.storage.events.publish(START, 10)
    records = await scene.storage.log.records(after=records[-1].position, limit=99)
    types = [each.event.type for each in records if each.event is not None]
    assert types == [EventType.HUB_DISK] * 5 + [EventType.FEED_FAILING] * 5


async def test_a_callback_is_failing_from_its_second_failure_in_a_row_on(
    scene: Scene,
) -> None:
    await subscribe_operator(scene)
    feed = await scene.add_feed(private=True)
    late = await scene.subscribe_retrying(feed)
    assert await events_of(scene) == []

    await try_again(scene, at(5), 503, attempts=2)
    await try_again(scene, at(10), 502, attempts=3)

    assert await events_of(scene) == [
        OperationalEvent(
            type=FAILING,
            at=at(5),
            subject=late.id,
            url=late.topic,
            is_private=True,
            callback=late.callback,
            since=START,
            reason="answered 503",
            code=503,
        )
    ]


async def test_a_callback_that_failed_once_brings_about_nothing(scene: Scene) -> None:
    await subscribe_operator(scene)
    await scene.subscribe_retrying(await scene.add_feed())

    await try_again(scene, at(5), 200, finished=True)

    assert await events_of(scene) == []


async def test_a_callback_works_again_with_its_first_success(scene: Scene) -> None:
    await subscribe_operator(scene)
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    await try_again(scene, at(5), 503, attempts=2)

    await try_again(scene, at(10), 200, finished=True)

    _, recovered = await events_of(scene)
    assert recovered.type is EventType.SUBSCRIPTION_RECOVERED
    assert (recovered.subject, recovered.at) == (late.id, at(10))
    assert (recovered.since, recovered.reason, recovered.code) == (START, "", None)


async def test_what_was_told_of_nobody_is_not_told_as_working_again(
    scene: Scene,
) -> None:
    await scene.subscribe_retrying(await scene.add_feed())
    await try_again(scene, at(5), 503, attempts=2)
    await subscribe_operator(scene)

    await try_again(scene, at(10), 200, finished=True)

    assert await events_of(scene) == []


async def test_who_subscribes_later_is_told_with_the_next_failure(scene: Scene) -> None:
    await scene.subscribe_retrying(await scene.add_feed())
    await try_again(scene, at(5), 503, attempts=2)
    await subscribe_operator(scene)

    await try_again(scene, at(10), 502, attempts=3)

    (failing,) = await events_of(scene)
    assert (failing.type, failing.since, failing.code) == (FAILING, START, 502)


def given_up(late: Subscription, lease_id: int, first: int, last: int) -> NewDeadLetter:
    return NewDeadLetter(
        subscription_id=late.id,
        lease_id=lease_id,
        first=Position(first),
        last=Position(last),
        reason="answered 500 (after 11 tries)",
        at=at(9),
    )


async def test_giving_up_is_told_once_until_it_works_again(scene: Scene) -> None:
    await subscribe_operator(scene)
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    (claimed,) = await scene.claim_retrying(at(5))
    lost = given_up(late, claimed.lease_id, 1, 1)
    await scene.flush(when=at(9), given_up=(lost,))

    (event,) = await events_of(scene)
    assert event == OperationalEvent(
        type=EventType.SUBSCRIPTION_GIVEN_UP,
        at=at(9),
        subject=late.id,
        url=late.topic,
        callback=late.callback,
        since=START,
        reason="answered 500 (after 11 tries)",
        first=Position(1),
        last=Position(1),
    )
    await scene.deliver()
    position = await scene.publish(feed, "a probe")
    (chunk,) = await scene.claim()
    probe = given_up(late, 0, position, position)
    await scene.flush(outcomes=all_of(chunk, 500), given_up=(probe,))
    assert len(await events_of(scene)) == 1

    await scene.deliver()
    await scene.publish(feed, "taken")
    (chunk,) = await scene.claim()
    await scene.flush(outcomes=all_of(chunk), recovered=(late.id,))
    assert await types_of(scene) == [
        EventType.SUBSCRIPTION_GIVEN_UP,
        EventType.SUBSCRIPTION_RECOVERED,
    ]


async def test_each_subscription_that_ends_is_told_of(scene: Scene) -> None:
    await subscribe_operator(scene)
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    one = await scene.subscribe(feed, "one")
    two = await scene.subscribe(feed, "two", lease_end=at(1))
    await try_again(scene, at(5), 503, attempts=2)
    storage = scene.storage

    await storage.subscriptions.expire(at(6), 9)
    await scene.flush(when=at(7), ended=((one.id, "the callback answered 410 Gone"),))
    await storage.subscriptions.end_all(feed.id, "the feed was removed", at(8), 9)
    await storage.subscriptions.end_all(feed.id, "the feed was removed", at(9), 9)

    _failing, *ended = await events_of(scene)
    assert {each.type for each in ended} == {EventType.SUBSCRIPTION_ENDED}
    assert [(each.subject, each.at, each.reason) for each in ended] == [
        (two.id, at(6), "the lease has expired"),
        (one.id, at(7), "the callback answered 410 Gone"),
        (late.id, at(8), "the feed was removed"),
    ]
    assert [(each.since, each.code) for each in ended] == [
        (None, None),
        (None, None),
        (START, 503),
    ]


async def test_of_subscriptions_to_events_there_are_no_events(scene: Scene) -> None:
    feed = await scene.add_feed()
    operator = await subscribe_operator(scene)
    second = await scene.storage.events.topic("events:feed.*", START)
    other = await scene.subscribe(second, "other", topic=second.url)
    await scene.storage.log.commit(fetch(feed, events=(failing_feed(feed),)))
    await scene.storage.events.publish(START, 9)
    chunk = next(each for each in await scene.claim() if each.record.position == 1)
    failing = next(each for _, each in chunk.pending)

    await scene.fail(chunk, failing)
    await try_again(scene, at(5), 500, attempts=2)
    (claimed,) = await scene.claim_retrying(at(10))
    lost = given_up(failing, claimed.lease_id, 1, 1)
    await scene.flush(when=at(10), given_up=(lost,))
    await scene.storage.subscriptions.end(failing.id, "over", at(11), tell=False)

    assert failing.id in (operator.id, other.id)
    assert set(await types_of(scene)) == {EventType.FEED_FAILING}


async def test_a_subscription_that_begins_anew_is_told_of_as_any_other(
    scene: Scene,
) -> None:
    await subscribe_operator(scene)
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    await try_again(scene, at(5), 503, attempts=2)
    await scene.storage.subscriptions.end(late.id, "over", at(6), tell=False)

    again = await scene.subscribe_retrying(feed)
    await try_again(scene, at(10), 503, attempts=2)

    assert again.id == late.id
    assert await types_of(scene) == [FAILING, EventType.SUBSCRIPTION_ENDED, FAILING]


async def test_a_condition_is_told_when_it_begins_and_when_it_is_over(
    scene: Scene,
) -> None:
    await subscribe_operator(scene)
    events = scene.storage.events

    for when, holding in ((0, [DISK]), (1, [DISK]), (2, []), (3, []), (4, [DISK])):
        await events.note_conditions(holding, at(when))

    begun, over, again = await events_of(scene)
    assert begun == again == DISK
    assert (over.is_over, over.at, over.reason) == (True, at(2), DISK.reason)


async def test_a_topic_keeps_its_feed_and_brings_it_back(scene: Scene) -> None:
    feed = await scene.storage.events.topic(EVERYTHING, START)
    feeds = scene.storage.feeds

    assert (feed.state, feed.private) == (FeedState.EVENTS, True)
    assert await scene.storage.events.topic(EVERYTHING, at(1)) == feed
    await feeds.set_state(feed.id, FeedState.REMOVED, at(2))
    back = await scene.storage.events.topic(EVERYTHING, at(3))
    assert (back.id, back.state) == (feed.id, FeedState.EVENTS)
    assert await feeds.page(after=0, limit=9) == []
    assert await feeds.due(at(99), after={}, limit=9) == []
    assert await feeds.targets([feed.id]) == []
    assert (await scene.storage.backlog()).feeds == 0


async def test_who_catches_up_is_told_of_events_from_the_log(scene: Scene) -> None:
    feed = await scene.add_feed()
    operator = await subscribe_operator(scene)
    await scene.storage.log.commit(fetch(feed, events=(failing_feed(feed),)))
    await scene.storage.events.publish(START, 9)
    (chunk,) = await scene.claim()
    await scene.fail(chunk, operator)

    (retrying,) = await scene.claim_retrying(at(5))

    (record,) = await scene.storage.log.records(
        after=retrying.position, limit=9, feed_id=operator.feed_id
    )
    assert record.event == failing_feed(feed)
