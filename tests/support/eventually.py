"""Waiting for what must come, with a deadline instead of a guess."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable

FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.1


async def eventually(
    condition: Callable[[], bool | Awaitable[bool]], seconds: float = 60.0
) -> None:
    """Return as soon as the condition holds; `TimeoutError` when it does not.

    One that is awaited asks somebody, most often a hub, who has other things to do: it
    is asked ever less often.
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
