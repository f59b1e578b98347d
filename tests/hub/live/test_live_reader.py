"""The reader of the log: it goes on after trouble, and passes by who is ahead."""

from __future__ import annotations

import asyncio

import pytest

from hub.live.live_reader import RecentRecords
from storage.errors import StorageBusy, StorageClosed, StorageError
from storage.records import FeedId, Position
from tests.support.live_scene import LiveScene, record_of
from tests.support.waiting import eventually


@pytest.fixture
def scene() -> LiveScene:
    return LiveScene(record_of(1, 1))


def publish(scene: LiveScene, position: int) -> None:
    scene.log.all.append(record_of(1, position))
    scene.log.put_entry(position * 10, "news")


def fail_once(scene: LiveScene, error: StorageError) -> None:
    errors = [error]

    def fail() -> None:
        if errors:
            raise errors.pop()

    scene.log.before_read = fail


async def test_it_gives_what_comes_to_those_who_have_joined(scene: LiveScene) -> None:
    async with asyncio.TaskGroup() as tasks:
        connection = scene.connect(tasks)
        connection.follow([scene.subscription(connection, after=1)])
        publish(scene, 2)
        reading = tasks.create_task(scene.reader.run())
        await eventually(lambda: scene.writer.written == [("feed 1", "e-2")])
        reading.cancel()


async def test_who_stands_above_a_record_is_not_given_it(scene: LiveScene) -> None:
    async with asyncio.TaskGroup() as tasks:
        connection = scene.connect(tasks)
        connection.follow([scene.subscription(connection, after=2)])
        publish(scene, 2)
        publish(scene, 3)
        reading = tasks.create_task(scene.reader.run())
        await eventually(lambda: scene.reader.position == 3)
        reading.cancel()
    assert scene.writer.written == [("feed 1", "e-3")]


async def test_a_record_of_which_nothing_is_left_is_passed_over(
    scene: LiveScene,
) -> None:
    async with asyncio.TaskGroup() as tasks:
        connection = scene.connect(tasks)
        connection.follow([scene.subscription(connection, after=1)])
        for position in (2, 3):
            publish(scene, position)
        scene.log.put_entry(20, "news", revision=2, deleted=True)
        reading = tasks.create_task(scene.reader.run())
        await eventually(lambda: scene.writer.written == [("feed 1", "e-3")])
        reading.cancel()


async def test_it_reads_on_after_a_read_that_failed(scene: LiveScene) -> None:
    fail_once(scene, StorageBusy("too much to do"))
    publish(scene, 2)
    reading = asyncio.create_task(scene.reader.run())
    await eventually(lambda: scene.reader.position == 2)
    reading.cancel()


async def test_it_ends_with_the_database(scene: LiveScene) -> None:
    fail_once(scene, StorageClosed("the database is closed"))
    publish(scene, 2)
    with pytest.raises(StorageClosed):
        await scene.reader.run()


async def test_how_far_it_has_got_is_told_to_those_who_measure(
    scene: LiveScene,
) -> None:
    assert scene.metrics.live_position == 1
    publish(scene, 2)
    reading = asyncio.create_task(scene.reader.run())
    await eventually(lambda: scene.metrics.live_position == 2)
    reading.cancel()


def recent(records: int, **bounds: int) -> RecentRecords:
    """Every third record is of the second feed."""
    kept = RecentRecords(Position(10), **bounds)
    for position in range(11, 11 + records):
        kept.add(record_of(2 if position % 3 == 0 else 1, position))
    return kept


def test_recent_records_are_found_by_their_feed_and_in_order() -> None:
    kept = recent(5)
    assert kept.has_all_after(Position(10))
    assert not kept.has_all_after(Position(9))
    found = {
        (feed, after): [each.position for each in kept.after(after, FeedId(feed))]
        for feed in (1, 2, 3)
        for after in (Position(10), Position(13))
    }
    assert found == {
        (1, 10): [11, 13, 14],
        (1, 13): [14],
        (2, 10): [12, 15],
        (2, 13): [15],
        (3, 10): [],
        (3, 13): [],
    }


def test_of_recent_records_only_so_many_are_kept_and_entries_count_too() -> None:
    kept = recent(20, most=10)  # each names one entry
    assert not kept.has_all_after(Position(24))
    assert kept.has_all_after(Position(25))
    assert [each.position for each in kept.after(Position(0), FeedId(2))] == [27, 30]
    kept = recent(3, most=0)
    assert kept.has_all_after(Position(13))
    assert not kept.has_all_after(Position(12))
    assert kept.after(Position(0), FeedId(1)) == ()
