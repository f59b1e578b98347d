"""The series of the hub: values measured each second, kept, and read again.

Measuring a second costs some additions: the values are the counters that `/metrics`
shows, and every ten seconds those that the database knows. Every five minutes a sample
is written, so that a restart loses no more than that.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from hub.runtime.clock import Clock
from hub.runtime.metrics import Metrics
from hub.runtime.process_metrics import resident_bytes
from hub.runtime.series_memory import (
    BOUNDS,
    Buckets,
    DelayLine,
    DelayName,
    Line,
    SeriesMemory,
    SeriesName,
)
from hub.services.disk_space import DiskSpace
from hub.services.hub_health import HubBacklog, age_of
from storage.contract import Storage
from storage.errors import StorageError
from storage.records import (
    FeedHealth,
    RecordKind,
    SeriesSample,
    SubscriptionHealth,
)

LOOK_SECONDS: Final = 10.0
"""Seconds between two looks at values that only the database knows."""
MOST_MISSED: Final = 10
"""Seconds that one late measurement stands for, at most."""
KEPT: Final = timedelta(days=30)
SETTING_SECONDS: Final = 3_600.0
"""Seconds after a start within which a clock that was far behind may still be set."""
LOADED: Final = 100
"""Samples that are read at once at the start."""


class SeriesRange(StrEnum):
    """How far back a series goes, as people choose it."""

    MINUTES = "10min"
    HOURS = "6h"
    DAY = "24h"
    DAYS = "30d"

    @property
    def seconds(self) -> int:
        return _SECONDS[self]


_SECONDS: Final[Mapping[SeriesRange, int]] = {
    SeriesRange.MINUTES: 600,
    SeriesRange.HOURS: 21_600,
    SeriesRange.DAY: 86_400,
    SeriesRange.DAYS: 2_592_000,
}


class HubSeries:
    def __init__(
        self,
        storage: Storage,
        metrics: Metrics,
        waiting: Callable[[], Awaitable[HubBacklog]],
        disk: DiskSpace,
        clock: Clock,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        cpu: Callable[[], float] = time.process_time,
        memory: Callable[[], int | None] = resident_bytes,
    ) -> None:
        """``cpu``: returns the processor seconds used by the process; ``memory``: its
        bytes now."""
        self._storage = storage
        self._metrics = metrics
        self._waiting = waiting
        self._disk = disk
        self._clock = clock
        self._sleep = sleep
        self._cpu = cpu
        self._memory = memory
        self._series = SeriesMemory()
        self._started = clock.monotonic()
        self._kept_until: datetime | None = None
        self.has_loaded = False
        """Whether everything that was kept before this start has been read."""
        self._levels: dict[SeriesName, float] = {}
        self._unsaved: SeriesSample | None = None
        self._has_unsaved = asyncio.Event()
        self._counted = self._count()
        self._counted_at = clock.monotonic()
        self._delays = self._count_delays()

    # --- reading ---

    def buckets(
        self, since: float, until: float, points: int, *, have_delays: bool = False
    ) -> Buckets:
        """The buckets of a span of time, limited to the time that is kept."""
        now = self._clock.unix()
        until = min(until, now)
        since = min(max(since, now - KEPT.total_seconds()), until)
        return self._series.buckets(since, until, points, have_delays=have_delays)

    def recent(
        self, range: SeriesRange, points: int, *, have_delays: bool = False
    ) -> Buckets:
        """The buckets of the last hours or days, up to now."""
        now = self._clock.unix()
        since = now - range.seconds
        return self.buckets(since, now, points, have_delays=have_delays)

    def line(
        self, name: SeriesName, wanted: Buckets, known: Line | None = None
    ) -> Line:
        """The line of a series. ``known``: the same line from before, which saves most
        of the work."""
        return self._series.line(name, wanted, known)

    def delay_line(
        self, name: DelayName, wanted: Buckets, known: DelayLine | None = None
    ) -> DelayLine:
        """The line of a delay. ``known``: as for `line`."""
        return self._series.delay_line(name, wanted, known)

    # --- measuring ---

    async def run(self) -> None:
        """Measure and store until cancelled."""
        await self.load()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._look_often())
            group.create_task(self._measure_often())
            group.create_task(self._save_often())

    async def load(self) -> None:
        """Read the samples kept before this start, as far as possible."""
        since = self._clock.now() - KEPT
        coarse = self._series.rings[-1]
        while True:
            try:
                samples = await self._storage.series.page(since, LOADED)
            except StorageError:
                break
            for sample in samples:
                slot = int(sample.at.timestamp()) // coarse.step
                coarse.put(slot, _known_values(sample), _known_delays(sample))
                self._kept_until = sample.at
            if len(samples) < LOADED:
                break
            since = samples[-1].at + timedelta(milliseconds=1)
            await asyncio.sleep(0)
        self.has_loaded = True

    async def _measure_often(self) -> None:
        while True:
            await self._sleep(1.0 - self._clock.unix() % 1.0)
            self.measure()

    def measure(self) -> None:
        """Measure the second that has just ended, and seconds before it that were
        missed."""
        now = self._clock.monotonic()
        seconds, slot = self._series.rings[0], int(self._clock.unix() - 0.5)
        elapsed = now - self._counted_at
        if elapsed <= 0 or slot == seconds.latest:
            return
        before, self._counted = self._counted, self._count()
        self._counted_at = now
        values = {
            name: ((count - before[name]) / elapsed,) * 2
            for name, count in self._counted.items()
        }
        values |= {name: (level, level) for name, level in self._levels.items()}
        connections = float(self._metrics.connections.total)
        values[SeriesName.CONNECTIONS] = connections, connections
        missed = slot - seconds.latest - 1
        first = slot - missed if 0 < missed < MOST_MISSED else slot
        for each in range(first, slot + 1):
            seconds.put(each, values, {})
            if each % 10 == 9:
                self._sum_up(each // 10)

    def _sum_up(self, slot: int) -> None:
        """Sum up the last ten seconds, and what there is of their five minutes."""
        seconds, tens, coarse = self._series.rings
        counted, self._delays = self._delays, self._count_delays()
        delays = {
            name: [now - then for now, then in zip(counts, counted[name], strict=True)]
            for name, counts in self._delays.items()
        }
        tens.put(slot, tens.summed_up(seconds, slot), delays)
        per = coarse.step // tens.step
        values = coarse.summed_up(tens, slot // per)
        together = {name: tens.counts(name, slot // per * per, per) for name in BOUNDS}
        coarse.put(slot // per, values, together)
        if slot % per == per - 1:
            self._unsaved = SeriesSample(
                at=datetime.fromtimestamp(slot // per * coarse.step, UTC),
                values={str(name): value for name, value in values.items()},
                delays={str(name): tuple(each) for name, each in together.items()},
            )
            self._has_unsaved.set()

    def _count(self) -> dict[SeriesName, float]:
        """The values that only grow."""
        metrics = self._metrics
        entries, deliveries, polls = metrics.entries, metrics.deliveries, metrics.polls
        return {
            SeriesName.ENTRIES_NEW: entries[RecordKind.ENTRIES],
            SeriesName.ENTRIES_UPDATED: entries[RecordKind.UPDATED]
            + entries[RecordKind.DELETED],
            SeriesName.DELIVERED: deliveries["delivered"],
            SeriesName.REFUSED: deliveries["refused"],
            SeriesName.UNANSWERED: deliveries["unanswered"],
            SeriesName.GIVEN_UP: metrics.endings["given_up"],
            SeriesName.POLLS: polls.total,
            SeriesName.POLLS_FAILED: polls["failed"],
            SeriesName.PUSHES: metrics.pushes,
            SeriesName.COMMITS: metrics.commits.total,
            SeriesName.LIVE_MESSAGES: metrics.live_messages.total,
            SeriesName.REQUESTS: metrics.requests.total,
            SeriesName.CPU: self._cpu(),
        }

    def _count_delays(self) -> dict[DelayName, tuple[int, ...]]:
        return {
            DelayName.PUBLICATION_TO_COMMIT: self._metrics.publications.counts,
            DelayName.COMMIT_TO_DELIVERY: self._metrics.first_deliveries.counts,
        }

    async def _look_often(self) -> None:
        while True:
            await self.look()
            await self._sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Measure the values that only the database and the system know."""
        try:
            waiting = await self._waiting()
            database = await self._storage.status()
            free = await asyncio.to_thread(self._disk.free)
        except (StorageError, OSError):
            self._levels = {}
            return
        backlog = waiting.backlog
        self._levels = {
            SeriesName.FANOUTS: backlog.fanouts,
            SeriesName.CHUNKS: backlog.chunks,
            SeriesName.RETRYING: backlog.retrying,
            SeriesName.DEAD_LETTERS: backlog.dead_letters,
            SeriesName.DELIVERY_LAG: age_of(backlog.oldest_undelivered, self._clock),
            SeriesName.LIVE_LAG: age_of(waiting.oldest_unstreamed, self._clock),
            SeriesName.OVERDUE: age_of(backlog.oldest_due, self._clock),
            SeriesName.DISK_FREE: free,
            SeriesName.DATABASE: database.size_bytes,
            SeriesName.FEEDS_FAILING: waiting.feeds[FeedHealth.FAILING],
            SeriesName.SUBSCRIPTIONS_FAILING: waiting.subscriptions[
                SubscriptionHealth.FAILING
            ],
        }
        if (memory := self._memory()) is not None:
            self._levels[SeriesName.MEMORY] = memory

    async def _save_often(self) -> None:
        while True:
            await self._has_unsaved.wait()
            await self.save()

    async def save(self) -> None:
        """Write the sample of five minutes. If that fails, it is missing after a
        restart."""
        self._has_unsaved.clear()
        sample, self._unsaved = self._unsaved, None
        if sample is not None and not self._is_doubtful(sample.at):
            with suppress(StorageError):
                await self._storage.series.add(sample, self._clock.now() - KEPT)

    def _is_doubtful(self, at: datetime) -> bool:
        """Whether a sample could overwrite later ones because the clock is still to be
        set: a clock that has lost its time starts years ago, until it is
        synchronized."""
        uptime = self._clock.monotonic() - self._started
        is_before = self._kept_until is not None and at < self._kept_until
        return is_before and uptime < SETTING_SECONDS


def _known_values(sample: SeriesSample) -> dict[SeriesName, tuple[float, float]]:
    """The values of a sample, without series that only another version has."""
    return {name: sample.values[name] for name in SeriesName if name in sample.values}


def _known_delays(sample: SeriesSample) -> dict[DelayName, tuple[int, ...]]:
    """The delays of a sample, without those that another version counted in other
    bins."""
    return {
        name: sample.delays[name]
        for name, bounds in BOUNDS.items()
        if len(sample.delays.get(name, ())) == len(bounds) + 1
    }
