"""Time in which sleepers sleep, and which passes only when a test says so."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from itertools import count

from tests.support.clock import ManualClock

_LOOKS = 5
"""Turns of the event loop after each awakening, so that those awake get on with it."""


class PlayedTime:
    """Give ``clock`` and ``sleep`` to what is tested.

    ``settle``: until all that is awake has got on as far as it can.
    """

    def __init__(self, settle: Callable[[], Awaitable[None]] | None = None) -> None:
        self.clock = ManualClock()
        self._settle = settle or _settle
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = count()

    @property
    def now(self) -> float:
        return self.clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.get_running_loop().create_future()
        until = self.now + seconds
        heapq.heappush(self._sleepers, (until, next(self._numbers), woken))
        await woken

    async def pass_by(self, seconds: float) -> None:
        """Let time pass: all sleepers wake at their times, one after the other."""
        end = self.now + seconds
        await self._settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            until, _, woken = heapq.heappop(self._sleepers)
            self.clock.advance(max(0.0, until - self.now))
            if not woken.done():
                woken.set_result(None)
            await self._settle()
        self.clock.advance(max(0.0, end - self.now))
        await self._settle()


async def _settle() -> None:
    for _ in range(_LOOKS):
        await asyncio.sleep(0)
