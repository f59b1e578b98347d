"""Much work in steps that are short, however slow the disk is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from hub.core.step_size import StepSize
from hub.runtime.clock import Clock


class PacedSteps:
    """Takes on less where steps take long, which also others wait for."""

    def __init__(self, clock: Clock, size: StepSize) -> None:
        self._clock = clock
        self._size = size

    @property
    def count(self) -> int:
        """What the next step takes on."""
        return self._size.count

    async def take(self, step: Callable[[int], Awaitable[int]]) -> int:
        """One step: it is told what to take on, and says how much it did."""
        began = self._clock.monotonic()
        done = await step(self._size.count)
        self._size = self._size.after(done, self._clock.monotonic() - began)
        return done

    async def take_and_rest(self, step: Callable[[int], Awaitable[int]]) -> int:
        """The same, and then nothing for as long: half of the time is for others."""
        began = self._clock.monotonic()
        done = await self.take(step)
        await asyncio.sleep(self._clock.monotonic() - began)
        return done
