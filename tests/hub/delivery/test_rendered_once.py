"""A record is rendered once for each format, however many get it, and however.

Each rendering reads the feed's head once, and nothing else does: so reads of heads
are counted, at the storage's own seam.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import pytest

from storage.contract import LogStore, Storage
from storage.records import FeedId, Format
from tests.support.delivery_scene import delivery_scene
from tests.support.live_scene import LiveScene, record_of
from tests.support.waiting import eventually

SUBSCRIBERS = 40


class CountingLog:
    """A log; ``renderings`` are the heads read of it."""

    def __init__(self, log: LogStore) -> None:
        self.renderings = 0
        self._log = log

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

    async def feed_head(self, feed_id: FeedId) -> bytes | None:
        self.renderings += 1
        return await self._log.feed_head(feed_id)


class StorageWith:
    """A storage with another log."""

    def __init__(self, storage: Storage, log: CountingLog) -> None:
        self._storage = storage
        self.log = log

    def __getattr__(self, name: str) -> object:
        return getattr(self._storage, name)


@pytest.mark.parametrize("formats", [[Format.JSON], [Format.JSON, Format.ATOM]])
async def test_all_callbacks_get_what_was_rendered_once_a_format(
    tmp_path: Path, formats: list[Format]
) -> None:
    async with delivery_scene(tmp_path) as scene:
        feed = await scene.add_feed()
        for number in range(SUBSCRIBERS):
            format = formats[number % len(formats)]
            await scene.subscribe(feed, str(number), format=format)
        log = CountingLog(scene.storage.log)
        scene.storage = cast("Storage", StorageWith(scene.storage, log))
        async with scene.dispatching():
            for record in (1, 2):
                await scene.publish(feed, "News")
                await eventually(scene.is_settled)
                assert log.renderings == record * len(formats)
        assert len(scene.subscribers.requests) == 2 * SUBSCRIBERS


async def test_all_who_resume_get_what_was_rendered_once() -> None:
    scene = LiveScene(record_of(1, 1), record_of(1, 2))
    async with asyncio.TaskGroup() as tasks:
        for _ in range(SUBSCRIBERS):
            connection = scene.connect(tasks)
            connection.follow([scene.subscription(connection)])
    assert len(scene.writer.written) == 2 * SUBSCRIBERS
    assert scene.log.heads_read == 2


async def test_all_who_listen_get_what_was_rendered_once() -> None:
    scene = LiveScene(record_of(1, 1))
    async with asyncio.TaskGroup() as tasks:
        for _ in range(SUBSCRIBERS):
            connection = scene.connect(tasks)
            connection.follow([scene.subscription(connection, after=1)])
        scene.log.all.append(record_of(1, 2))
        scene.log.put_entry(20, "news")
        reading = tasks.create_task(scene.reader.run())
        await eventually(lambda: len(scene.writer.written) == SUBSCRIBERS)
        reading.cancel()
    assert scene.log.heads_read == 1
