"""Waiting with a deadline for what must come, instead of guessing when it comes.

There are also background parts for a block, and a measure of how late the event loop
is: a tick that should come every few milliseconds comes later on a busy machine.
"""

from __future__ import annotations

import asyncio
import inspect
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from time import monotonic
from types import TracebackType
from typing import Self

import pytest

from hub.runtime.background import BackgroundTask

FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.1


async def eventually(
    condition: Callable[[], bool | Awaitable[bool]], seconds: float = 60.0
) -> None:
    """Return as soon as the condition holds. Raises `TimeoutError` if it does not.

    A condition that is awaited asks somebody, most often a hub, who has other things to
    do: it is asked less and less often.
    """
    pause = FIRST_PAUSE
    async with asyncio.timeout(seconds):
        while True:
            holds = condition()
            if inspect.isawaitable(holds):
                holds = await holds
                pause = min(pause * 1.3, LONGEST_PAUSE)
            if holds:
                return
            await asyncio.sleep(pause)


AGAIN = 5.0


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Fail the test if the block takes longer, whatever it waits for.

    A signal interrupts the main thread, or its event loop, and again if that changes
    nothing.
    """

    def ring(number: int, frame: object) -> None:
        pytest.fail(f"no end after {seconds:g} s")

    former = signal.signal(signal.SIGALRM, ring)
    outer = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *outer)
        signal.signal(signal.SIGALRM, former)


@asynccontextmanager
async def in_background(
    part: BackgroundTask, name: str | None = None
) -> AsyncIterator[None]:
    """Run a part for the block, as a task of this name; fail if it has ended by itself,
    with what ended it."""
    task = asyncio.create_task(part(), name=name)
    try:
        yield
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


TICK = 0.02


class LoopLag:
    """Measures how late the event loop is, while it is entered."""

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
        """The most seconds that a tick was late since then, or 0.0."""
        return max((late for at, late in self._ticks if at >= moment), default=0.0)

    async def _tick(self) -> None:
        while True:
            begun = monotonic()
            await asyncio.sleep(TICK)
            now = monotonic()
            self._ticks.append((now, now - begun - TICK))
