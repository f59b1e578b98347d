"""The steps of deliveries: news of ten topics with a hundred subscribers, at a rate."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from scripts.benchmarks.measuring import Finding, Sample, Stopwatch, percentile
from scripts.benchmarks.receivers import Receivers, running_receivers
from scripts.benchmarks.sustained import (
    EACH,
    MOST_LATE,
    TOPICS,
    add_topics,
    post_bare,
    publish,
)
from scripts.benchmarks.topics import callbacks
from scripts.benchmarks.working_hub import Working
from storage.contract import Storage
from storage.records import FeedId

HOUR = 3_600
START, LEAST = 1_000, 100
"""Deliveries a second: where the search begins, and what it does not go below."""


@dataclass(frozen=True, slots=True)
class _Scene:
    storage: Storage
    feeds: Sequence[FeedId]
    receivers: Receivers
    seconds: float


@dataclass(frozen=True, slots=True)
class _Step:
    """``sample``: until the last had arrived, however late."""

    sample: Sample
    latencies: Sequence[float]


async def measure_pushes(
    directory: Path,
    storage: Storage,
    steps: Sequence[int],
    seconds: float,
    trials: int,
) -> AsyncIterator[Finding]:
    async with running_receivers(directory) as receivers:
        deliveries = callbacks(receivers.port, "at-once", TOPICS * EACH)
        bare = await post_bare(deliveries)
        cpu = median(sample.microseconds for sample in bare)
        feeds = await add_topics(storage, deliveries)
        scene = _Scene(storage, feeds, receivers, seconds)
        async with Working(storage, HOUR):
            await _push(scene, START)  # opens the connections, and does not count
            for rate in steps:
                for finding in _findings(rate, await _push(scene, rate), cpu):
                    yield finding

            async def is_soon(rate: int) -> bool:
                step = await _push(scene, rate)
                return percentile(step.latencies, 0.99) <= MOST_LATE

            highest = await search(is_soon, START, trials)
    most = max(sample.rate for sample in bare)
    yield Finding(
        bench="ladder",
        measure="deliveries per second, most with p99 <= 1 s",
        hub=highest,
        floor=most,
        ratio=highest / most,
    )


async def search(
    holds: Callable[[int], Awaitable[bool]], start: int, trials: int
) -> int:
    """The highest rate found to hold in so many trials, 0 if none is.

    Doubled while it holds, or halved until it does, then between the two.
    """
    low, high = 0, 0  # the highest that holds, the lowest that does not
    rate = start
    for _ in range(trials):
        if await holds(rate):
            low = rate
        else:
            high = rate
        rate = low * 2 if not high else (low + high) // 2
        if rate < LEAST:
            break
    return low


async def _push(scene: _Scene, rate: int) -> _Step:
    """All that is due is committed, however late the hub is; until all has arrived."""
    receivers = scene.receivers
    told, answered = receivers.told, receivers.answered
    watch, began = Stopwatch(), time.monotonic()
    sent = await publish(scene.storage, scene.feeds, rate, began + scene.seconds)
    await receivers.wait_for(answered + sent)
    sample = watch.sample(sent, receivers.last)
    return _Step(sample, receivers.latencies(told))


def _findings(rate: int, step: _Step, floor: float) -> list[Finding]:
    about = f"{rate:,} pushes asked for"
    cpu = step.sample.microseconds
    return [
        Finding(
            bench="ladder",
            measure=f"{about}: deliveries per second",
            hub=step.sample.rate,
        ),
        Finding(
            bench="ladder",
            measure=f"{about}: CPU us per delivery",
            hub=cpu,
            floor=floor,
            ratio=cpu / floor,
        ),
        *(
            Finding(
                bench="ladder",
                measure=f"{about}: ms from commit to arrival, {name}",
                hub=1_000 * percentile(step.latencies, share),
            )
            for name, share in (("p50", 0.5), ("p99", 0.99))
        ),
    ]
