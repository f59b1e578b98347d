"""The steps of websockets: what each holds, and what a message to all of them takes."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from statistics import median

from scripts.benchmarks.crowds import Crowd, most_connections
from scripts.benchmarks.listeners import listening
from scripts.benchmarks.live import (
    TARGET,
    accepting,
    add_feeds,
    connected,
    serving,
    speak,
    write,
)
from scripts.benchmarks.measuring import Finding
from scripts.benchmarks.sustained import megabytes
from storage.contract import Storage

FLOOR = 1_000
"""Connections; of as many as the hub has, both would need too many files."""
ROUNDS = 3


async def measure_sockets(
    directory: Path, storage: Storage, steps: Sequence[int], messages: int
) -> AsyncIterator[Finding]:
    """In order: those of a step stay for the next, so that memory only grows."""
    most = most_connections(max(steps))
    made = [step for step in steps if step <= most]
    for step in set(steps) - set(made):
        print(
            f"not made: {step:,} websockets; this system lets a process have {most:,}"
            " connections (ulimit -Hn)",
            file=sys.stderr,
        )
    if not made:
        return
    floor = await _floor(directory, min(FLOOR, *made), messages)
    feeds = await add_feeds(storage)
    async with (
        serving(storage, max(made)) as (port, metrics),
        Crowd(directory, port, TARGET) as crowd,
    ):
        before = megabytes()
        for step in made:
            await crowd.grow(step)
            await connected(metrics, "websocket", step)
            kibibytes = (megabytes() - before) * 1024 / step
            cpu = (await speak(storage, feeds, crowd, messages, step)).microseconds
            for finding in _findings(step, kibibytes, cpu, floor):
                yield finding


async def _floor(directory: Path, connections: int, messages: int) -> float:
    """CPU in microseconds of writing one frame to a bare connection."""
    async with (
        accepting() as bare,
        listening(directory, "raw", bare.port, "", connections) as listeners,
    ):
        samples = [await write(bare, listeners, messages) for _ in range(ROUNDS)]
    return median(sample.microseconds for sample in samples)


def _findings(
    step: int, kibibytes: float, cpu: float, floor: float
) -> tuple[Finding, Finding]:
    return (
        Finding(
            bench="ladder",
            measure=f"{step:,} websockets: CPU us per message",
            hub=cpu,
            floor=floor,
            ratio=cpu / floor,
        ),
        Finding(
            bench="ladder",
            measure=f"{step:,} websockets: KiB per connection",
            hub=kibibytes,
        ),
    )
