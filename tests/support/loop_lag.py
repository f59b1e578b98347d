"""How late this event loop is: what a busy machine does to everything that runs on it.

The yardstick for waits that a test cannot know beforehand: a tick that should come
every few milliseconds comes so much later.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from types import TracebackType
from typing import Self

TICK = 0.02


class LoopLag:
    """Measures while it is entered."""

    def __init__(self) -> None:
        self._ticks: list[tuple[float, float]] = []  # when, and how late
        self._ticking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._ticking = asyncio.create_task(self._tick())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._ticking is not None
        self._ticking.cancel()
        await asyncio.wait({self._ticking})

    def most_since(self, moment: float) -> float:
        """Seconds of the worst lateness since then, 0.0 if there was none."""
        return max((late for at, late in self._ticks if at >= moment), default=0.0)

    async def _tick(self) -> None:
        while True:
            begun = monotonic()
            await asyncio.sleep(TICK)
            now = monotonic()
            self._ticks.append((now, now - begun - TICK))
