"""Replays: what is sent of the past, to whom, and what can come in between."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from hub.live.replays import PAGE, RENDERED_AT_ONCE
from protocols.live.live_messages import FAILED, SLOW
from storage.errors import StorageBusy
from storage.records import EntryId, FeedId, Position
from tests.support.live_scene import LiveScene, record_of
from tests.support.waiting import eventually


def cursors(*positions: int, feed: int = 1) -> list[tuple[str, str]]:
    return [(f"feed {feed}", f"e-{each}") for each in positions]


async def test_who_has_everything_joins_without_a_replay() -> None:
    scene = LiveScene(record_of(1, 1))
    async with asyncio.TaskGroup() as tasks:
        connection = scene.connect(tasks)
        connection.follow([scene.subscription(connection, after=1)])
        assert not connection.is_behind
    assert scene.joined == {"feed 1"}
    assert scene.log.reads == 0


@pytest.mark.parametrize("records", [1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE])
async def test_a_replay_of_any_length_sends_each_record_once_and_in_order(
    records: int,
) -> None:
    scene = LiveScene(*[record_of(1, number) for number in range(1, records + 1)])
    async with asyncio.TaskGroup() as tasks:
        connection = scene.connect(tasks)
        connection.follow([scene.subscription(connection)])
        assert connection.is_behind
    assert scene.writer.written == cursors(*range(1, records + 1))
    assert scene.joined == {"feed 1"}
    assert scene.written["replayed"] == records


async def test_topics_that_begin_together_come_in_the_order_of_the_log() -> None:
    """Also where one has far more records than a page, and another few."""
    feeds = [2 if number % 40 == 0 else 1 for number in range(1, 4 * PAGE)]
    scene = LiveScene(*[record_of(feed, at) for at, feed in enumerate(feeds, 1)])
    async with asyncio.TaskGroup() as tasks:
        connection = scene.connect(tasks)
        connection.follow([scene.subscription(connection, feed) for feed in (1, 2)])
    assert scene.writer.written == [
        (f"feed {feed}", f"e-{at}") for at, feed in enumerate(feeds, 1)
    ]


async def test_a_record_that_comes_during_the_replay_is_replayed_too() -> None:
    scene = LiveScene(*[record_of(1, number) for number in range(1, PAGE + 10)])

    def publish() -> None:
        if len(scene.writer.written) == PAGE + 5:
            scene.log.all.append(record_of(1, PAGE + 10))
            scene.log.put_entry((PAGE + 10) * 10, "late")
            scene.reader.pass_by(scene.log.all[-1])

    scene.writer.on_write = publish
    async with asyncio.TaskGroup() as tasks:
        connection = scene.connect(tasks)
        connection.follow([scene.subscription(connection)])
    assert scene.writer.written == cursors(*range(1, PAGE + 11))
    assert scene.joined == {"feed 1"}


async def test_who_resumes_joins_although_the_log_goes_on_with_every_look_at_it() -> (
    None
):
    """With records of others, and one of its own, which are found without a look."""
    scene = LiveScene(record_of(1, 1), record_of(1, 2))

    def go_on() -> None:
        assert scene.log.reads < 9, "it would look for ever"
        last = scene.reader.position
        for position in range(last + 1, last + 4):
            record = record_of(1 if position == 4 else 2, position)
            scene.log.all.append(record)
            scene.log.put_entry(position * 10, "meanwhile")
            scene.reader.pass_by(record)

    scene.log.before_read = go_on
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        connection = scene.connect(tasks)
        connection.follow([scene.subscription(connection, after=1)])
    assert scene.writer.written == cursors(2, 4)
    assert scene.joined == {"feed 1"}
    assert scene.log.reads == 1
    (subscription,) = connection.subscriptions.values()
    assert subscription.position == scene.reader.position


async def test_who_was_gone_for_a_moment_is_caught_up_without_a_look_into_the_log() -> (
    None
):
    scene = LiveScene(record_of(1, 1))
    for position in range(2, 6):
        record = record_of(1 + position % 2, position)
        scene.log.put_entry(position * 10, "meanwhile")
        scene.reader.pass_by(record)
    async with asyncio.TaskGroup() as tasks:
        connection = scene.connect(tasks)
        connection.follow(
            [scene.subscription(connection, feed, after=2) for feed in (1, 2, 3)]
        )
    assert scene.writer.written == [
        *cursors(3, feed=2),
        *cursors(4),
        *cursors(5, feed=2),
    ]
    assert scene.joined == {"feed 1", "feed 2", "feed 3"}
    assert scene.log.reads == 0


async def test_of_a_crowd_that_resumes_few_have_the_database_busy_at_once() -> None:
    """Each wants another record rendered; the reader needs the database as well."""
    scene = LiveScene(*[record_of(1, number) for number in range(1, 101)])
    scene.log.hold_entries()
    async with asyncio.TaskGroup() as tasks:
        for after in range(100):
            connection = scene.connect(tasks)
            connection.follow([scene.subscription(connection, after=after)])
        await eventually(lambda: scene.metrics.live_resuming.value == 100)
        await eventually(lambda: scene.log.reading == RENDERED_AT_ONCE)
        scene.log.release_entries()
    assert scene.log.most_reading == RENDERED_AT_ONCE
    assert scene.metrics.live_resuming.value == 0


async def test_topics_that_are_asked_for_one_by_one_are_replayed_together_too() -> None:
    scene = LiveScene(record_of(1, 1), record_of(2, 2), record_of(1, 3))
    async with asyncio.TaskGroup() as tasks:
        connection = scene.connect(tasks)
        for feed in (2, 1):
            connection.follow([scene.subscription(connection, feed)])
    assert scene.writer.written == [*cursors(1), *cursors(2, feed=2), *cursors(3)]
    assert scene.joined == {"feed 1", "feed 2"}


async def test_a_topic_without_news_does_not_wait_for_others_to_be_replayed() -> None:
    scene = LiveScene(record_of(1, 1), record_of(2, 2))
    async with asyncio.TaskGroup() as tasks:
        connection = scene.connect(tasks)
        connection.follow([scene.subscription(connection)])
        connection.follow([scene.subscription(connection, feed=2, after=2)])
        assert scene.joined == {"feed 2"}


async def test_for_a_crowd_with_the_same_topics_each_record_is_rendered_once() -> None:
    """100 connections come back with eight topics each, asked for one by one and in
    orders of their own, to a hub that was just started."""
    records = [record_of(1 + at % 8, at) for at in range(1, 401)]
    scene = LiveScene(*records)
    draw = Random(1)
    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(scene.reader.run())
        await eventually(lambda: scene.reader.recent.has_all_after(Position(0)))
        reading.cancel()
        scene.log.reads = 0
        for _ in range(100):
            connection = scene.connect(tasks)
            for feed in draw.sample(range(1, 9), 8):
                connection.follow([scene.subscription(connection, feed)])
    assert len(scene.writer.written) == 100 * 400
    assert scene.log.reads == 0, "they are in memory"
    assert scene.log.entries_reads == 400


async def test_to_a_crowd_of_a_hub_that_was_just_started_the_log_is_in_memory() -> None:
    scene = LiveScene(*[record_of(1, at) for at in range(1, 501)])
    assert not scene.reader.recent.has_all_after(Position(499))
    reading = asyncio.create_task(scene.reader.run())
    await eventually(lambda: scene.reader.recent.has_all_after(Position(0)))
    reading.cancel()
    found = scene.reader.recent.after(Position(497), FeedId(1))
    assert [each.position for each in found] == [498, 499, 500]


async def test_a_topic_that_is_left_meanwhile_is_sent_no_more() -> None:
    scene = LiveScene(*[record_of(1 + number % 2, number) for number in range(1, 9)])
    async with asyncio.TaskGroup() as tasks:
        connection = scene.connect(tasks)
        leaving, staying = [scene.subscription(connection, feed) for feed in (2, 1)]

        def leave() -> None:
            if len(scene.writer.written) == 3:
                scene.channels.leave(leaving)

        scene.writer.on_write = leave
        connection.follow([leaving, staying])
    expected = [(f"feed {1 + number % 2}", f"e-{number}") for number in (1, 2, 3)]
    assert scene.writer.written == [*expected, *cursors(4, 6, 8)]
    assert scene.joined == {"feed 1"}


async def test_a_topic_that_is_left_before_its_turn_is_not_read() -> None:
    scene = LiveScene(record_of(1, 1), record_of(2, 2))
    async with asyncio.TaskGroup() as tasks:
        connection = scene.connect(tasks)
        leaving, staying = [scene.subscription(connection, feed) for feed in (1, 2)]
        connection.follow([leaving, staying])
        scene.channels.leave(leaving)
    assert scene.writer.written == cursors(2, feed=2)
    assert scene.log.reads == 1


async def test_a_record_of_which_nothing_is_left_is_passed_over() -> None:
    scene = LiveScene(*[record_of(1, number) for number in (1, 2, 3)])
    scene.log.put_entry(20, "Entry 20", revision=2, deleted=True)
    async with asyncio.TaskGroup() as tasks:
        connection = scene.connect(tasks)
        connection.follow([scene.subscription(connection)])
    assert scene.writer.written == cursors(1, 3)
    assert scene.joined == {"feed 1"}


async def test_records_that_are_trimmed_before_they_are_replayed_are_a_reset() -> None:
    """Between two of its pages: nobody misses them without being told, nor twice."""
    scene = LiveScene(*[record_of(1, number) for number in range(1, 2 * PAGE + 1)])

    def trim() -> None:
        if len(scene.writer.written) == PAGE:
            scene.log.trimmed = Position(PAGE + 3)
            scene.log.all = scene.log.all[PAGE + 3 :]

    scene.writer.on_write = trim
    async with asyncio.TaskGroup() as tasks:
        connection = scene.connect(tasks)
        connection.follow([scene.subscription(connection)])
    assert scene.writer.resets == [("feed 1", f"e-{PAGE}")]
    expected = [*range(1, PAGE + 1), *range(PAGE + 4, 2 * PAGE + 1)]
    assert scene.writer.written == cursors(*expected)


async def test_a_record_that_is_trimmed_after_it_was_read_is_a_reset() -> None:
    scene = LiveScene(*[record_of(1, number) for number in (1, 2, 3)])

    def trim() -> None:
        scene.log.trimmed = Position(2)
        del scene.log.states[EntryId(20)]
        scene.writer.on_write = lambda: None

    scene.writer.on_write = trim
    async with asyncio.TaskGroup() as tasks:
        connection = scene.connect(tasks)
        connection.follow([scene.subscription(connection)])
    assert scene.writer.resets == [("feed 1", "e-1")]
    assert scene.writer.written == cursors(1, 3)


async def test_many_that_are_trimmed_after_they_were_read_are_one_reset() -> None:
    """Also those of which there are entries still: they are not sent behind it."""
    scene = LiveScene(*[record_of(1, number) for number in range(1, 10)])

    def trim() -> None:
        scene.log.trimmed = Position(7)
        for number in (2, 3, 4, 6):
            del scene.log.states[EntryId(number * 10)]
        scene.writer.on_write = lambda: None

    scene.writer.on_write = trim
    async with asyncio.TaskGroup() as tasks:
        connection = scene.connect(tasks)
        connection.follow([scene.subscription(connection)])
    assert scene.writer.resets == [("feed 1", "e-1")]
    assert scene.writer.written == cursors(1, 8, 9)


async def test_a_log_that_cannot_be_read_ends_the_connection() -> None:
    scene = LiveScene(record_of(1, 1))

    def fail() -> None:
        raise StorageBusy("too much to do")

    scene.log.before_read = fail
    async with asyncio.TaskGroup() as tasks:
        connection = scene.connect(tasks)
        connection.follow([scene.subscription(connection)])
    assert scene.writer.closings == [FAILED]
    assert scene.joined == set()


async def test_a_client_that_takes_nothing_for_long_is_too_slow() -> None:
    scene = LiveScene(record_of(1, 1), patience=0.01)
    scene.writer.has_room.clear()
    async with asyncio.TaskGroup() as tasks:
        connection = scene.connect(tasks)
        connection.follow([scene.subscription(connection)])
    assert scene.writer.closings == [SLOW]
    assert scene.writer.written == []


async def test_a_client_that_takes_its_time_is_waited_for() -> None:
    scene = LiveScene(record_of(1, 1))
    scene.writer.has_room.clear()
    async with asyncio.TaskGroup() as tasks:
        connection = scene.connect(tasks)
        connection.follow([scene.subscription(connection)])
        await eventually(lambda: scene.log.reads > 0)
        assert scene.writer.written == []
        scene.writer.has_room.set()
    assert scene.writer.written == cursors(1)


async def test_a_topic_that_is_left_while_the_client_is_waited_for_is_not_sent() -> (
    None
):
    scene = LiveScene(record_of(1, 1))
    scene.writer.has_room.clear()
    async with asyncio.TaskGroup() as tasks:
        connection = scene.connect(tasks)
        subscription = scene.subscription(connection)
        connection.follow([subscription])
        await eventually(lambda: scene.log.reads > 0)
        scene.channels.leave(subscription)
        scene.writer.has_room.set()
    assert scene.writer.written == []
    assert scene.joined == set()


async def test_a_connection_that_ends_is_not_replayed_to() -> None:
    scene = LiveScene(record_of(1, 1))
    scene.writer.has_room.clear()
    async with asyncio.TaskGroup() as tasks:
        connection = scene.connect(tasks)
        for feed in (1, 2):
            connection.follow([scene.subscription(connection, feed)])
        await eventually(lambda: scene.log.reads > 0)
        connection.end()
    assert scene.writer.written == []
