"""Pages of the log that many resume from: read once, and never older than asked for."""

from __future__ import annotations

import asyncio
from typing import cast

from hub.live.pages import KEPT_SECONDS, PAGE, Pages
from hub.runtime.metrics import Metrics
from storage.contract import LogStore
from storage.records import FeedId, Position
from tests.support.clock import ManualClock
from tests.support.live_scene import LiveLog, record_of

FEED = FeedId(1)


class Scene:
    def __init__(self, records: int, **kept: int) -> None:
        self.log = LiveLog(*[record_of(1, at) for at in range(1, records + 1)])
        self.metrics = Metrics()
        self.clock = ManualClock()
        self.pages = Pages(cast("LogStore", self.log), self.metrics, self.clock, **kept)

    async def after(self, position: int, end: int) -> list[int]:
        page = await self.pages.after(Position(position), FEED, Position(end))
        return [each.position for each in page.records]


async def test_all_who_come_back_at_once_are_served_by_one_read() -> None:
    scene = Scene(records=3)
    async with asyncio.TaskGroup() as tasks:
        asking = [tasks.create_task(scene.after(1, end=3)) for _ in range(1_000)]
    assert all(each.result() == [2, 3] for each in asking)
    assert scene.log.reads == 1
    assert scene.metrics.live_reads["memory"] == 999


async def test_a_page_that_is_not_full_is_read_anew_when_the_log_went_on() -> None:
    scene = Scene(records=2)
    assert await scene.after(0, end=2) == [1, 2]
    scene.log.all.append(record_of(1, 3))
    assert await scene.after(0, end=2) == [1, 2]
    assert await scene.after(0, end=3) == [1, 2, 3]


async def test_a_full_page_stays_what_it_is() -> None:
    scene = Scene(records=PAGE)
    await scene.after(0, end=PAGE)
    scene.log.all.append(record_of(1, PAGE + 1))
    assert await scene.after(0, end=PAGE + 1) == [*range(1, PAGE + 1)]
    assert scene.log.reads == 1


async def test_only_so_much_is_kept() -> None:
    scene = Scene(records=PAGE, kept_size=100)
    for _ in range(2):
        for position in range(10):
            await scene.after(position, end=PAGE)
    assert scene.log.reads == 20


async def test_what_nobody_asks_for_any_more_is_kept_no_longer() -> None:
    scene = Scene(records=PAGE)
    await scene.after(0, end=PAGE)
    await scene.after(1, end=PAGE)
    scene.clock.advance(KEPT_SECONDS / 2)
    await scene.after(1, end=PAGE)
    scene.clock.advance(KEPT_SECONDS / 2)
    assert scene.log.reads == 2

    await scene.after(1, end=PAGE)
    assert scene.log.reads == 2
    await scene.after(0, end=PAGE)
    assert scene.log.reads == 3


async def test_trails_are_read_once_too() -> None:
    scene = Scene(records=3, kept_trails=2)
    for through in (1, 1, 2, 3, 1):
        trail = await scene.pages.trail(FEED, Position(through))
        assert trail.last == through
    assert scene.metrics.live_reads["database"] == 4
