"""How the hub is measured: counted, looked at, kept, and read after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hub.runtime.metrics import Metrics
from hub.runtime.series_memory import DelayName, SeriesName
from hub.services.disk_space import DiskSpace
from hub.services.hub_health import HubBacklog, MetricsService
from hub.services.hub_series import HubSeries, SeriesRange
from storage.contract import Storage
from storage.errors import StorageError
from tests.support.chosen_engine import open_chosen
from tests.support.clock import ManualClock
from tests.support.waiting import eventually, in_background

START = datetime(2026, 6, 2, 12, tzinfo=UTC)
MINUTES = SeriesRange.MINUTES


class World:
    """A hub's counters and clock, and the CPU it is said to have had."""

    def __init__(self, storage: Storage, directory: Path) -> None:
        self.storage = storage
        self.clock, self.metrics, self.cpu = ManualClock(START), Metrics(), 0.0
        self.disk = DiskSpace(storage, self.clock, directory, directory / "scp", 1)
        self.is_broken = False
        self.series = self.begin()

    def begin(self) -> HubSeries:
        service = MetricsService(self.storage, self.metrics, self.clock, self.disk)

        async def waiting() -> HubBacklog:
            if self.is_broken:
                raise StorageError("no")
            return await service.waiting()

        async def sleep(seconds: float) -> None:
            self.clock.advance(min(seconds, 1.0))
            await asyncio.sleep(0)

        return HubSeries(
            self.storage,
            self.metrics,
            waiting,
            self.disk,
            self.clock,
            sleep,
            cpu=lambda: self.cpu,
            memory=lambda: 123_000,
        )

    def second(self, seconds: float = 1.0) -> None:
        self.clock.advance(seconds)
        self.series.measure()

    def values(self, name: SeriesName) -> list[float]:
        """Those that were measured, second by second."""
        buckets = self.series.buckets(self.clock.unix() - 60, self.clock.unix(), 60)
        means = self.series.line(name, buckets).means
        return [each for each in means if each is not None]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    storage = await open_chosen(tmp_path / "hub.db")
    yield World(storage, tmp_path)
    await storage.close()


def test_counters_become_rates_a_second(world: World) -> None:
    for number in range(3):
        world.metrics.entries.add("entries", 10 * number)
        world.metrics.deliveries.add("refused", 2)
        world.metrics.commits.observe(0.1)
        world.cpu += 0.25
        world.second()
    assert world.values(SeriesName.ENTRIES_NEW) == [0, 10, 20]
    assert world.values(SeriesName.REFUSED) == [2, 2, 2]
    assert world.values(SeriesName.COMMITS) == [1, 1, 1]
    assert world.values(SeriesName.CPU) == [0.25] * 3
    assert world.values(SeriesName.FANOUTS) == []


def test_a_late_measurement_stands_for_the_seconds_it_missed(world: World) -> None:
    world.second()
    world.metrics.polls.add("failed", 12)
    world.second(4)
    world.second(0.2)
    assert world.values(SeriesName.POLLS_FAILED) == [0, 3, 3, 3, 3]
    world.second(30)
    assert len(world.values(SeriesName.POLLS_FAILED)) == 6


async def test_what_the_database_knows_is_looked_at(world: World) -> None:
    await world.series.look()
    world.metrics.connections.add("sse", 3)
    world.second()
    assert world.values(SeriesName.DEAD_LETTERS) == [0]
    assert world.values(SeriesName.CONNECTIONS) == [3]
    assert world.values(SeriesName.MEMORY) == [123_000]
    assert world.values(SeriesName.DISK_FREE)[0] > 0
    world.is_broken = True
    await world.series.look()
    world.second()
    assert len(world.values(SeriesName.DEAD_LETTERS)) == 1
    assert world.values(SeriesName.CONNECTIONS) == [3, 3]


@pytest.mark.parametrize("begun", [False, True])
def test_of_however_long_a_time_few_slots_are_read(world: World, begun: bool) -> None:
    if begun:
        world.second()
    now = world.clock.unix()
    for since, until in ((0.0, 9e9), (now - 2_592_000, now), (9e9, 9.1e9), (0, 1)):
        for have_delays in (False, True):
            found = world.series.buckets(since, until, 90, have_delays=have_delays)
            assert found.count <= 91
            assert found.count * found.step // found.slot <= 8_700


def test_delays_are_told_of_ten_seconds(world: World) -> None:
    for _ in range(25):
        world.metrics.publications.observe(100)
        world.metrics.first_deliveries.observe(0.2)
        world.second()
    buckets = world.series.recent(MINUTES, 90, have_delays=True)
    late = world.series.delay_line(DelayName.PUBLICATION_TO_COMMIT, buckets)
    assert [sum(each) for each in late.counts if any(each)] == [10, 10, 5]
    quick = world.series.delay_line(DelayName.COMMIT_TO_DELIVERY, buckets)
    assert [each for each in quick.p50 if each] == [0.25] * 3


async def test_five_minutes_are_kept_over_a_restart(world: World) -> None:
    for _ in range(620):
        world.metrics.polls.add("fetched", 2)
        world.metrics.publications.observe(100)
        world.second()
        await world.series.save()
    kept = await world.storage.series.page(START, 9)
    assert [each.at - START for each in kept] == [timedelta(0), timedelta(minutes=5)]
    assert kept[0].values["polls"] == (2.0, 2.0)
    assert sum(kept[1].delays["publication_to_commit"]) == 300

    world.series = world.begin()
    await world.series.load()
    world.second()
    buckets = world.series.recent(SeriesRange.HOURS, 72, have_delays=True)
    line = world.series.line(SeriesName.POLLS, buckets)
    assert [each for each in line.means if each is not None] == [2, 2, 2]
    late = world.series.delay_line(DelayName.PUBLICATION_TO_COMMIT, buckets)
    assert [sum(each) for each in late.counts if any(each)] == [300, 300, 20]


async def test_what_was_measured_until_a_kill_is_kept_and_the_start_after_it(
    world: World,
) -> None:
    await world.series.load()
    started = int(world.clock.unix())
    for second in range(315):
        world.metrics.polls.add("fetched", 2)
        world.metrics.first_deliveries.observe(0.2)
        world.second()
        if second % 10 == 9:
            await world.series.save()
    world.clock.advance(30)
    world.series = world.begin()
    await world.series.load()
    world.metrics.first_deliveries.observe(0.2)

    buckets = world.series.recent(MINUTES, 60, have_delays=True)
    late = world.series.delay_line(DelayName.COMMIT_TO_DELIVERY, buckets)
    assert sum(map(sum, late.counts)) == 310 + 1
    polls = world.series.line(SeriesName.POLLS, world.series.recent(MINUTES, 60))
    assert [each for each in polls.means if each is not None] == [2] * 31
    now = world.clock.unix()
    assert world.series.starts(0, now + 1) == (started, int(now))
    day = world.series.recent(SeriesRange.DAY, 90, have_delays=True)
    late = world.series.delay_line(DelayName.COMMIT_TO_DELIVERY, day)
    assert sum(map(sum, late.counts)) == 310 + 1


async def test_it_measures_and_keeps_until_it_is_stopped(world: World) -> None:
    async def has_kept() -> bool:
        return bool(await world.storage.series.page(START, 1))

    async with in_background(world.series.run):
        await eventually(has_kept)
    assert world.values(SeriesName.POLLS)


@pytest.mark.parametrize(("uptime", "kept"), [(0, True), (3_600, False)])
async def test_a_clock_that_may_still_be_set_takes_away_no_later_samples(
    world: World, uptime: float, kept: bool
) -> None:
    for _ in range(610):
        world.second()
    await world.series.save()
    [sample] = await world.storage.series.page(START, 9)
    world.clock.set_back(timedelta(days=400).total_seconds())
    world.series = world.begin()
    await world.series.load()
    world.clock.advance(uptime)
    for _ in range(610):
        world.second()
    await world.series.save()
    assert (sample in await world.storage.series.page(START, 9)) is kept
