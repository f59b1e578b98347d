"""What grows with what is stored: the same asked of a hub with a million rows and of
one with ten thousand.

On PostgreSQL both are copies of databases of SQLite, on one server, and what counts is
the time: most of the work is done by the server.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from scripts.benchmarks.engines import Engine, copied_to_server, named
from scripts.benchmarks.measuring import (
    Finding,
    Sample,
    Size,
    Stopwatch,
    alternate,
    cpu_finding,
    time_finding,
)
from scripts.benchmarks.stored_hubs import open_stored
from storage.contract import Storage

MANY: Final = 1_000_000
FEW: Final = 10_000
MOST_GROWTH: Final = 2.0
OPERATIONS: Final = 300

Ask = Callable[[int], Awaitable[object]]
"""One operation, of the row with that number."""


async def measure_growth(
    directory: Path,
    bench: str,
    asks: Mapping[str, Callable[[Storage, int], Ask]],
    what: str,
    size: Size,
    *,
    targets: Mapping[str, float] | None = None,
    opened: Callable[[Path, int], Awaitable[Storage]] = open_stored,
    operations: int = OPERATIONS,
    most: int = MANY,
    engine: Engine = Engine.SQLITE,
) -> AsyncIterator[Finding]:
    """What each of ``asks`` costs. They are given how many there are; ``what`` there is
    many of, for people. ``targets``: of those that may grow more than twofold.

    ``opened`` makes the hubs; the large one has ``most``.
    """
    part = size.pick(1, 10, 20)
    many, few = most // part, FEW // part
    operations = size.pick(operations, operations, 3)
    finding = cpu_finding if engine is Engine.SQLITE else time_finding
    name_of_bench = named(bench, engine)
    async with AsyncExitStack() as stack:
        if engine is not Engine.SQLITE:
            opened = stack.enter_context(copied_to_server(opened))
        large = await opened(directory / "large.db", many)
        stack.push_async_callback(large.close)
        small = await opened(directory / "small.db", few)
        stack.push_async_callback(small.close)
        for name, ask in asks.items():
            samples = await alternate(
                size.pick(9, 3, 1),
                large=_sampling(ask(large, many), many, operations),
                small=_sampling(ask(small, few), few, operations),
            )
            measured = f"{name}, {many:,} {what} (floor: {few:,})"
            target = (targets or {}).get(name, MOST_GROWTH)
            yield finding(
                name_of_bench, measured, samples["large"], samples["small"], target
            )


def _sampling(ask: Ask, count: int, operations: int) -> Callable[[], Awaitable[Sample]]:
    chance = random.Random(1)  # noqa: S311 - hides nothing

    async def run() -> Sample:
        watch = Stopwatch()
        for _ in range(operations):
            await ask(chance.randrange(count))
        return watch.sample(operations)

    return run
