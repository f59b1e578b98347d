"""What uses the disk, how fast that grows, and when the disk is full.

Sizes are recorded in the database once an hour, so that a restart loses nothing of the
last day.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final, Protocol

from hub.core.disk_forecast import (
    MEASURED,
    DiskForecast,
    forecast_disk,
    forecast_words,
)
from hub.runtime.clock import Clock
from storage.contract import Storage
from storage.records import DiskSample

SAMPLED_EVERY: Final = timedelta(hours=1)
REPORT_SECONDS: Final = 60.0
"""Seconds for which a report is reused."""
_ELSEWHERE: Final = (
    "The database is on a server, whose disk the hub does not see; this is the disk of"
    " what the hub keeps beside it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskReport:
    """Sizes in bytes. ``purposes``: the parts of the database (`Storage.usage`), and
    the ``collections`` beside it. ``limit``: the size of the database from which on the
    oldest records of the log are removed; 0: no limit. ``forecast`` None: not known
    yet, or never full; ``outlook`` says it in sentences."""

    purposes: Mapping[str, int]
    free: int
    total: int
    limit: int
    forecast: DiskForecast | None
    outlook: str


class DiskUsage(Protocol):
    """A disk's sizes in bytes, as `shutil.disk_usage` returns them."""

    @property
    def total(self) -> int: ...
    @property
    def free(self) -> int: ...


class DiskSpace:
    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        directory: Path,
        collections: Path,
        limit: int,
        *,
        holds_database: bool = True,
        disk_of: Callable[[Path], DiskUsage] = shutil.disk_usage,
    ) -> None:
        """``directory``: where the database is; or, if it is on a server, where the hub
        keeps its other files. ``limit``: see `DiskReport`."""
        self._storage = storage
        self._clock = clock
        self._directory = directory
        self._collections = collections
        self._limit = limit
        self.holds_database = holds_database
        self._disk_of = disk_of
        self._asked = asyncio.Lock()
        self._reported: tuple[float, DiskReport] | None = None

    def free(self) -> int:
        """Free bytes on the disk now."""
        return self._disk_of(self._directory).free

    async def sample(self) -> None:
        """Store the sizes, unless that was done within the hour. Raises
        `StorageError`."""
        if not self.holds_database:
            return
        now = self._clock.now()
        samples = await self._samples()
        if len(samples) < 2 or now - samples[-2].at >= SAMPLED_EVERY:
            await self._storage.note_disk(samples[-1], now - MEASURED)

    async def report(self) -> DiskReport:
        """What uses the disk, at most a minute old. Raises `StorageError`."""
        async with self._asked:
            now = self._clock.monotonic()
            if self._reported is None or now - self._reported[0] >= REPORT_SECONDS:
                self._reported = now, await self._report()
            return self._reported[1]

    async def _report(self) -> DiskReport:
        samples = await self._samples()
        total, collections = await asyncio.to_thread(self._look)
        forecast, outlook = self._foresee(samples)
        return DiskReport(
            purposes={**await self._storage.usage(), "collections": collections},
            free=samples[-1].free_bytes,
            total=total,
            limit=self._limit,
            forecast=forecast,
            outlook=outlook,
        )

    def _foresee(
        self, samples: Sequence[DiskSample]
    ) -> tuple[DiskForecast | None, str]:
        if not self.holds_database:
            return None, _ELSEWHERE
        forecast = forecast_disk(samples, self._limit)
        return forecast, forecast_words(forecast, samples, self._limit)

    def _look(self) -> tuple[int, int]:
        """The bytes of the whole disk, and of the collections."""
        return self._disk_of(self._directory).total, _bytes_in(self._collections)

    async def _samples(self) -> list[DiskSample]:
        """The samples of the last day, and one of now."""
        now, database = self._clock.now(), await self._storage.status()
        sample = DiskSample(
            at=now,
            used_bytes=database.size_bytes - database.free_bytes,
            free_bytes=await asyncio.to_thread(self.free),
        )
        kept = await self._storage.disk_samples()
        return [each for each in kept if now - MEASURED <= each.at < now] + [sample]


def _bytes_in(folder: Path) -> int:
    """The bytes of the files in a folder; 0 if there is no folder."""
    try:
        with os.scandir(folder) as found:
            return sum(each.stat().st_size for each in found if each.is_file())
    except OSError:  # a file may be removed meanwhile
        return 0
