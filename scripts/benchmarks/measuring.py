"""What a run of many operations cost: wall time, and CPU of this process only."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from statistics import median
from typing import TypeVar

Run = Callable[[], Awaitable["Sample"]]
Measure = Callable[[Path, "Size"], AsyncIterator["Finding"]]
"""A bench: measures in a directory of its own, and yields each row when it is there."""

Value = TypeVar("Value")


class Size(Enum):
    """How much of everything a bench takes."""

    FULL = auto()  # what docs/performance.md tells
    QUICK = auto()  # for a look
    SMALLEST = auto()  # figures mean nothing; whether it still runs

    def pick(self, full: Value, quick: Value, smallest: Value) -> Value:
        match self:
            case Size.FULL:
                return full
            case Size.QUICK:
                return quick
            case Size.SMALLEST:
                return smallest


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One run: how many operations in how many seconds, with how many CPU seconds."""

    operations: int
    seconds: float
    cpu: float

    @property
    def rate(self) -> float:
        return self.operations / self.seconds

    @property
    def microseconds(self) -> float:
        """CPU per operation."""
        return self.cpu / self.operations * 1e6


class Stopwatch:
    """Runs from its creation; all threads count, other processes do not."""

    def __init__(self) -> None:
        self._cpu = _cpu_seconds()
        self._started = time.monotonic()

    def sample(self, operations: int, ended: float | None = None) -> Sample:
        """``ended``: the monotonic moment of the end, if it is not now."""
        return Sample(
            operations=operations,
            seconds=(ended or time.monotonic()) - self._started,
            cpu=_cpu_seconds() - self._cpu,
        )


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One row of the table: the hub, its floor if it has one, and what was hoped.

    ``error``: why there is no figure.
    """

    bench: str
    measure: str
    hub: float | None = None
    floor: float | None = None
    ratio: float | None = None
    target: str = ""
    met: bool = True
    error: str = ""


async def until(condition: Callable[[], Awaitable[bool]], pause: float) -> None:
    """Ask again and again, ``pause`` seconds apart, for two minutes at most."""
    async with asyncio.timeout(120):
        while True:
            if await condition():
                return
            await asyncio.sleep(pause)


async def alternate(rounds: int, **runs: Run) -> dict[str, list[Sample]]:
    """Run each in turn, round by round, after one round that does not count.

    Machines change their speed; what takes turns is slowed down alike.
    """
    samples: dict[str, list[Sample]] = {name: [] for name in runs}
    for round in range(rounds + 1):
        for name, run in runs.items():
            sample = await run()
            if round:
                samples[name].append(sample)
    return samples


def rate_finding(
    bench: str,
    measure: str,
    hub: Sequence[Sample],
    floor: Sequence[Sample],
    at_least: float | None,
) -> Finding:
    """Operations per second; ``at_least`` so many times the floor."""
    ours, bare = [each.rate for each in hub], [each.rate for each in floor]
    ratio = _median_ratio(ours, bare)
    return Finding(
        bench=bench,
        measure=f"{measure} per second",
        hub=median(ours),
        floor=median(bare),
        ratio=ratio,
        target="" if at_least is None else f">= {at_least:g} x",
        met=at_least is None or ratio >= at_least,
    )


def cpu_finding(
    bench: str,
    measure: str,
    hub: Sequence[Sample],
    floor: Sequence[Sample],
    at_most: float | None,
) -> Finding:
    """CPU per operation; ``at_most`` so many times the floor."""
    ours, bare = (
        [each.microseconds for each in hub],
        [each.microseconds for each in floor],
    )
    return _cost_finding(bench, f"CPU us per {measure}", ours, bare, at_most)


def time_finding(
    bench: str,
    measure: str,
    hub: Sequence[Sample],
    floor: Sequence[Sample],
    at_most: float | None,
) -> Finding:
    """Milliseconds per operation, one after another; ``at_most`` so many times the
    floor."""
    ours, bare = ([1_000 / each.rate for each in those] for those in (hub, floor))
    return _cost_finding(bench, f"ms per {measure}", ours, bare, at_most)


def _cost_finding(
    bench: str,
    measure: str,
    ours: Sequence[float],
    bare: Sequence[float],
    at_most: float | None,
) -> Finding:
    ratio = _median_ratio(ours, bare)
    return Finding(
        bench=bench,
        measure=measure,
        hub=median(ours),
        floor=median(bare),
        ratio=ratio,
        target="" if at_most is None else f"<= {at_most:g} x",
        met=at_most is None or ratio <= at_most,
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The value that so much of all do not exceed."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def _median_ratio(ours: Sequence[float], bare: Sequence[float]) -> float:
    """Of each round by itself, so that a slow minute of the machine cancels out."""
    return median(mine / other for mine, other in zip(ours, bare, strict=True))
