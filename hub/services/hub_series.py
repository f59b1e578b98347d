"""The series of the hub: values measured each second, kept, and read again.

Measuring a second costs some additions: the values are the counters that `/metrics`
shows, and every ten seconds those that the database knows. Every ten seconds a sample
is written, so that a restart loses no more than that; every five minutes one that is
kept for thirty days.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from math import inf
from typing import Final

from hub.runtime.clock import Clock
from hub.runtime.metrics import Metrics
from hub.runtime.process_metrics import resident_bytes
from hub.runtime.series_memory import (
    BOUNDS,
    Buckets,
    DelayLine,
    DelayName,
    DelaySlot,
    Line,
    Ring,
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
FINE_KEPT: Final = timedelta(minutes=65)
"""How long samples of ten seconds are kept: a whole hour, and the five minutes that it
begins in."""
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
        self._kept_until: dict[bool, datetime] = {}
        self.has_loaded = False
        """Whether everything that was kept before this start has been read."""
        self._levels: dict[SeriesName, float] = {}
        self._unsaved: dict[bool, SeriesSample] = {}
        """Samples to be written: True: of ten seconds, False: of five minutes."""
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
        if have_delays:
            self._count_open()
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

    def amount(self, name: SeriesName, buckets: Buckets) -> float:
        """About how many there were, of a rate."""
        return self._series.amount(name, buckets.first, buckets.end)

    def delay_line(
        self, name: DelayName, wanted: Buckets, known: DelayLine | None = None
    ) -> DelayLine:
        """The line of a delay. ``known``: as for `line`."""
        return self._series.delay_line(name, wanted, known)

    @property
    def counted_from(self) -> datetime | None:
        """From when on `late_times` knows how late entries were; None: it is not known
        yet."""
        self._count_open()
        kept_from = self._series.delays_kept_from
        is_known = self.has_loaded and kept_from < inf
        return datetime.fromtimestamp(kept_from, UTC) if is_known else None

    def late_times(self, since: datetime, until: datetime) -> list[DelaySlot]:
        """When new entries were committed in a span of time, by how long after their
        publication: the times with the longest delays first."""
        self._count_open()
        return self._series.delay_slots(
            DelayName.PUBLICATION_TO_COMMIT, since.timestamp(), until.timestamp()
        )

    def starts(self, since: float, until: float) -> tuple[int, ...]:
        """When the hub was started from ``since`` on and before ``until``, in Unix
        seconds."""
        return self._series.starts(since, until)

    # --- measuring ---

    async def run(self) -> None:
        """Measure and store until cancelled."""
        await self.load()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._look_often())
            group.create_task(self._measure_often())
            group.create_task(self._save_often())

    async def load(self) -> None:
        """Read the samples kept before this start, as far as possible, and note the
        start."""
        with suppress(StorageError):
            await self._load(KEPT, is_fine=False)
            await self._load(FINE_KEPT, is_fine=True)
        self._sum_up_before()
        start = int(self._clock.unix())
        self._series.note_starts([start])
        self.has_loaded = True
        tens = self._series.rings[1]
        self._unsaved[True] = self._sample(tens, start // tens.step)
        await self.save()

    async def _load(self, kept: timedelta, *, is_fine: bool) -> None:
        ring = self._series.rings[1 if is_fine else -1]
        since = self._clock.now() - kept
        while True:
            page = self._storage.series.page
            samples = await page(since, LOADED, is_fine=is_fine)
            for sample in samples:
                slot = int(sample.at.timestamp()) // ring.step
                ring.put(slot, _known_values(sample), _known_delays(sample))
                self._series.note_starts(sample.starts)
                self._kept_until[is_fine] = sample.at
            if len(samples) < LOADED:
                return
            since = samples[-1].at + timedelta(milliseconds=1)
            await asyncio.sleep(0)

    def _sum_up_before(self) -> None:
        """Sum up the five minutes whose end the hub did not see. Only the last of them
        is saved: earlier ones were, unless the hub was killed twice in an hour."""
        _, tens, coarse = self._series.rings
        first = max(tens.begun * tens.step // coarse.step, coarse.latest + 1)
        for slot in range(first, int(self._clock.unix()) // coarse.step):
            if tens.begun >= 0 and self._sum_up_tens(slot):
                self._unsaved[False] = self._sample(coarse, slot)

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
        _, tens, coarse = self._series.rings
        counted = self._count_delays()
        self._put_tens(slot, counted)
        self._delays = counted
        self._unsaved[True] = self._sample(tens, slot)
        per = coarse.step // tens.step
        if slot % per == per - 1:
            self._unsaved[False] = self._sample(coarse, slot // per)
        self._has_unsaved.set()

    def _count_open(self) -> None:
        """Count the delays of ten seconds that are not over, for whoever looks now."""
        counted = self._count_delays()
        if counted != self._delays:
            tens = self._series.rings[1]
            self._put_tens(int(self._clock.unix()) // tens.step, counted)

    def _put_tens(self, slot: int, counted: Mapping[DelayName, Sequence[int]]) -> None:
        seconds, tens, coarse = self._series.rings
        delays = {
            name: [
                now - then for now, then in zip(counts, self._delays[name], strict=True)
            ]
            for name, counts in counted.items()
        }
        tens.put(slot, tens.summed_up(seconds, slot), delays)
        self._sum_up_tens(slot * tens.step // coarse.step)

    def _sum_up_tens(self, slot: int) -> bool:
        """Sum up what there is of five minutes; False: nothing."""
        _, tens, coarse = self._series.rings
        per = coarse.step // tens.step
        values = coarse.summed_up(tens, slot)
        delays = {name: tens.counts(name, slot * per, per) for name in BOUNDS}
        coarse.put(slot, values, delays)
        return bool(values)

    def _sample(self, ring: Ring, slot: int) -> SeriesSample:
        begin = slot * ring.step
        return SeriesSample(
            at=datetime.fromtimestamp(begin, UTC),
            values={str(name): value for name, value in ring.values(slot).items()},
            delays={str(name): tuple(ring.counts(name, slot, 1)) for name in BOUNDS},
            starts=self._series.starts(begin, begin + ring.step),
        )

    def _count(self) -> dict[SeriesName, float]:
        """The values of counters, which only grow."""
        metrics = self._metrics
        entries, deliveries, polls = metrics.entries, metrics.deliveries, metrics.polls
        return {
            SeriesName.ENTRIES_NEW: entries[RecordKind.ENTRIES],
            SeriesName.ENTRIES_UPDATED: entries[RecordKind.UPDATED]
            + entries[RecordKind.DELETED],
            SeriesName.ENTRIES_UNDATED: metrics.freshness.undated,
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
        """Write the samples that are over. One that cannot be written is missing after
        a restart."""
        self._has_unsaved.clear()
        unsaved, self._unsaved = self._unsaved, {}
        for is_fine, sample in unsaved.items():
            if not self._is_doubtful(sample.at, is_fine=is_fine):
                kept = self._clock.now() - (FINE_KEPT if is_fine else KEPT)
                with suppress(StorageError):
                    await self._storage.series.add(sample, kept, is_fine=is_fine)

    def _is_doubtful(self, at: datetime, *, is_fine: bool) -> bool:
        """Whether a sample could overwrite later ones because the clock is still to be
        set: a clock that has lost its time starts years ago, until it is
        synchronized."""
        uptime = self._clock.monotonic() - self._started
        kept_until = self._kept_until.get(is_fine)
        is_before = kept_until is not None and at < kept_until
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
