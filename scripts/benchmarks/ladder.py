"""A hub at work, step by step more of it, until it is too much.

Websockets that all hear the same messages, feeds polled at a rate, deliveries at a
rate, and the highest rate at which 99 of 100 deliveries still arrive within a second of
their commit. Nothing is hoped for: what is noted is what a step costs, beside a floor
of the same minute. A step that this machine does not allow is left out, and said so.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from scripts.benchmarks.ladder_polls import measure_polls
from scripts.benchmarks.ladder_pushes import measure_pushes
from scripts.benchmarks.ladder_sockets import measure_sockets
from scripts.benchmarks.measuring import Finding, Size
from storage.contract import Storage
from storage.sqlite import open_database


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """``polls`` and ``pushes`` a second, for so many ``seconds`` each."""

    sockets: tuple[int, ...] = (1_000, 10_000, 50_000)
    polls: tuple[int, ...] = (100, 500, 1_000)
    pushes: tuple[int, ...] = (1_000, 5_000)
    seconds: float = 10.0
    messages: int = 20
    trials: int = 8
    """Of which the highest rate is found."""


QUICK = Steps(sockets=(1_000,), polls=(100,), pushes=(500,), seconds=4.0, trials=3)
SMALLEST = Steps(
    sockets=(10,), polls=(50,), pushes=(200,), seconds=0.2, messages=2, trials=1
)


async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
    async for finding in climb(directory, size.pick(Steps(), QUICK, SMALLEST)):
        yield finding


async def climb(directory: Path, steps: Steps) -> AsyncIterator[Finding]:
    """Each kind with a database of its own, so that none bears the work of another."""
    climbs: dict[str, Callable[[Path, Storage], AsyncIterator[Finding]]] = {
        "sockets": lambda home, storage: measure_sockets(
            home, storage, steps.sockets, steps.messages
        ),
        "polls": lambda home, storage: measure_polls(
            home, storage, steps.polls, steps.seconds
        ),
        "pushes": lambda home, storage: measure_pushes(
            home, storage, steps.pushes, steps.seconds, steps.trials
        ),
    }
    for name, measure_steps in climbs.items():
        home = directory / name
        home.mkdir()
        storage = await open_database(home / "hub.db")
        try:
            async for finding in measure_steps(home, storage):
                yield finding
        finally:
            await storage.close()
