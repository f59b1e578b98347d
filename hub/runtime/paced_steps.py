"""Much work done in short steps, however slow the disk is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from hub.runtime.clock import Clock


class StepSize(msgspec.Struct, frozen=True, kw_only=True):
    """``count`` of whatever is done by the next step, which is to take ``seconds``."""

    count: int
    most: int
    seconds: float

    def after(self, done: int, took: float) -> StepSize:
        """The size of the next step, after one that did so much in so many seconds.

        A step that had less to do than it might have done does not show how much fits.
        """
        count = self.count
        if took > self.seconds:
            count = max(1, int(count * self.seconds / took))
        elif took < self.seconds / 2 and done >= count:
            count = min(self.most, count * 2)
        return msgspec.structs.replace(self, count=count)


class PacedSteps:
    """Makes steps smaller when they take long, since others wait for them."""

    def __init__(self, clock: Clock, size: StepSize) -> None:
        self._clock = clock
        self._size = size

    @property
    def count(self) -> int:
        """The number of items for the next step."""
        return self._size.count

    async def take(self, step: Callable[[int], Awaitable[int]]) -> int:
        """Do one step: it is given the number of items to do, and returns how many it
        did."""
        began = self._clock.monotonic()
        done = await step(self._size.count)
        self._size = self._size.after(done, self._clock.monotonic() - began)
        return done

    async def take_and_rest(self, step: Callable[[int], Awaitable[int]]) -> int:
        """Like `take`, and then rest for as long, so that half of the time is left for
        others."""
        began = self._clock.monotonic()
        done = await self.take(step)
        await asyncio.sleep(self._clock.monotonic() - began)
        return done
