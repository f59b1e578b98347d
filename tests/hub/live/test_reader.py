"""The reader of the log: it goes on after trouble, and passes by who is ahead."""

from __future__ import annotations

import asyncio

import pytest

from storage.errors import StorageBusy, StorageClosed, StorageError
from tests.support.eventually import eventually
from tests.support.live_scene import LiveScene, record_of


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
        await eventually(lambda: scene.outlet.written == [("feed 1", "e-2")])
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
    assert scene.outlet.written == [("feed 1", "e-3")]


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
        await eventually(lambda: scene.outlet.written == [("feed 1", "e-3")])
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
