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
"""Bytes that an allocator takes or gives back at a time, and more: less is no trend."""
MOST_EACH_HOUR = 0.01
"""Of what there is: the growth of an hour that is none."""


@dataclass(slots=True)
class MemoryWatch:
    """Looks at what a process has for itself. `run` until cancelled; then `trend`."""

    pid: int
    samples: list[tuple[float, int]] = field(default_factory=list)
    """Seconds, and bytes."""

    async def run(self) -> None:
        while True:
            with suppress(FileNotFoundError, ProcessLookupError):
                self.samples.append((monotonic(), own_memory(self.pid)))
            await asyncio.sleep(EACH)

    def trend(self) -> Trend:
        return find_trend(self.samples)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """What a process had when it was warm, what it had in the end, and how much later
    that was in seconds. Both are the middle of many looks."""

    before: float
    after: float
    seconds: float

    @property
    def growth(self) -> float:
        return self.after - self.before

    @property
    def is_growing(self) -> bool:
        """More than can be told from none, and than one of a hundred each hour."""
        hours = self.seconds / 3_600
        return self.growth > RESOLUTION + MOST_EACH_HOUR * hours * self.before


def find_trend(samples: list[tuple[float, int]]) -> Trend:
    """Of the time after the warm-up, which is half of it all, or ten minutes: between
    the middle of its first third and that of its last."""
    if len(samples) < 12:
        return Trend(before=0.0, after=0.0, seconds=0.0)
    began, ended = samples[0][0], samples[-1][0]
    warm = began + min((ended - began) / 2, LONGEST_WARM_UP)
    looks = [each for each in samples if each[0] >= warm]
    third = len(looks) // 3
    first, last = looks[:third], looks[-third:]
    return Trend(
        before=median(size for _at, size in first),
        after=median(size for _at, size in last),
        seconds=last[len(last) // 2][0] - first[len(first) // 2][0],
    )


def own_memory(pid: int) -> int:
    """Bytes that are in memory and of no file."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(each for each in status.splitlines() if each.startswith("RssAnon"))
    return int(line.split()[1]) * 1024
