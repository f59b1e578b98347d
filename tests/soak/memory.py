"""The memory of a process, read from outside while it works, and whether it grows."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import monotonic

EACH = 0.5  # seconds between two looks
LONGEST_WARM_UP = 600.0
RESOLUTION = 3e6
"""Bytes that an allocator may take or give back at a time: less is no trend."""
CACHES = (16 << 20, 8 << 20, 8 << 20, 8 << 20)
"""Bytes of the database file that its writer, and each of its readers, may keep."""
MOST_EACH_HOUR = 0.01
"""The share of memory by which it may grow in an hour and count as not growing."""


@dataclass(frozen=True, slots=True)
class Look:
    """When it was looked, and how many bytes the memory and the database had."""

    at: float
    memory: int
    file: int


@dataclass(slots=True)
class MemoryWatch:
    """Measures what memory a process has for itself. `run` it, then ask for `trend`."""

    pid: int
    database: Path
    samples: list[Look] = field(default_factory=list)

    async def run(self) -> None:
        while True:
            with suppress(FileNotFoundError, ProcessLookupError):
                self.samples.append(
                    Look(monotonic(), own_memory(self.pid), self._file_size())
                )
            await asyncio.sleep(EACH)

    def _file_size(self) -> int:
        """0: it is on a server."""
        return self.database.stat().st_size if self.database.exists() else 0

    def trend(self) -> Trend:
        return find_trend(self.samples)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """What a process had when it was warm, and what it had ``seconds`` later.

    Both are medians of many looks. ``cached``: how much more of its database it may
    keep in the end.
    """

    before: float
    after: float
    seconds: float
    cached: float = 0.0

    @property
    def growth(self) -> float:
        return self.after - self.before

    @property
    def is_growing(self) -> bool:
        """Whether it grows by more than noise, caches and one in a hundred an hour."""
        hours = self.seconds / 3_600
        most = RESOLUTION + self.cached + MOST_EACH_HOUR * hours * self.before
        return self.growth > most


def find_trend(samples: list[Look]) -> Trend:
    """The trend after the warm-up, which is half of the time, or ten minutes.

    It is between the medians of the first and the last third of that time.
    """
    if len(samples) < 12:
        return Trend(before=0.0, after=0.0, seconds=0.0)
    began, ended = samples[0].at, samples[-1].at
    warm = began + min((ended - began) / 2, LONGEST_WARM_UP)
    looks = [each for each in samples if each.at >= warm]
    third = len(looks) // 3
    first, last = looks[:third], looks[-third:]
    return Trend(
        before=median(each.memory for each in first),
        after=median(each.memory for each in last),
        seconds=last[len(last) // 2].at - first[len(first) // 2].at,
        cached=_cached(last[-1].file) - _cached(first[0].file),
    )


def _cached(file: int) -> int:
    return sum(min(file, each) for each in CACHES)


def own_memory(pid: int) -> int:
    """Bytes in memory that belong to no file."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(each for each in status.splitlines() if each.startswith("RssAnon"))
    return int(line.split()[1]) * 1024
