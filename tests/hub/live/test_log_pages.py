"""Pages of the log that many resume from: read once, and never older than asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

import pytest

from hub.live.replays import KEPT_SECONDS, PAGE, GatheredReads, LogPages
from hub.runtime.metrics import Metrics
from storage.contract import LogStore
from storage.errors import StorageBusy
from storage.records import FeedId, Position
from tests.support.clock import ManualClock
from tests.support.live_scene import LiveLog, record_of
from tests.support.waiting import eventually

FEED = FeedId(1)


class Scene:
    def __init__(self, records: int, **kept: int) -> None:
        self.log = LiveLog(*[record_of(1, at) for at in range(1, records + 1)])
        self.metrics = Metrics()
        self.clock = ManualClock()
        self.pages = LogPages(
            cast("LogStore", self.log), self.metrics, self.clock, **kept
        )

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


async def test_trails_of_many_places_are_read_in_few_goes() -> None:
    scene = Scene(records=900)
    async with asyncio.TaskGroup() as tasks:
        asking = [
            tasks.create_task(scene.pages.trail(FEED, Position(through)))
            for through in range(1, 901)
        ]
    assert [each.result().last for each in asking] == [*range(1, 901)]
    assert scene.log.trail_reads == 2  # of 500 at most


class Source:
    """Tells twice each number, when a test lets it."""

    def __init__(self) -> None:
        self.goes: list[Sequence[int]] = []
        self.gate = asyncio.Event()
        self.error: Exception | None = None

    async def read(self, numbers: Sequence[int]) -> Sequence[int]:
        self.goes.append(numbers)
        error, self.error = self.error, None
        await self.gate.wait()
        if error is not None:
            raise error
        return [2 * each for each in numbers]


async def test_who_asks_during_a_read_is_part_of_the_next_one() -> None:
    source = Source()
    reads = GatheredReads(source.read)
    async with asyncio.TaskGroup() as tasks:
        asking = [tasks.create_task(reads.get(1))]
        await eventually(lambda: source.goes == [[1]])
        asking += [tasks.create_task(reads.get(each)) for each in (1, 2, 3, 2)]
        await asyncio.sleep(0)
        source.gate.set()
    assert [each.result() for each in asking] == [2, 2, 4, 6, 4]
    assert source.goes == [[1], [1, 2, 3]]


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_read_that_does_not_get_there_is_done_again_by_the_next(
    is_cancelled: bool,
) -> None:
    source = Source()
    source.error = None if is_cancelled else StorageBusy("too much to do")
    reads = GatheredReads(source.read)
    asking = [asyncio.create_task(reads.get(each)) for each in (1, 2, 3)]
    await eventually(lambda: len(source.goes) == 1)
    if is_cancelled:
        asking[0].cancel()
        await asyncio.wait({asking[0]})
    source.gate.set()
    with pytest.raises(asyncio.CancelledError if is_cancelled else StorageBusy):
        await asking[0]
    assert [await each for each in asking[1:]] == [4, 6]
