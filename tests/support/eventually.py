"""Waiting for what must come, with a deadline instead of a guess."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable


async def eventually(
    condition: Callable[[], bool | Awaitable[bool]], seconds: float = 60.0
) -> None:
    """Return as soon as the condition holds; `TimeoutError` when it does not."""
    async with asyncio.timeout(seconds):
        while True:
            holds = condition()
            if inspect.isawaitable(holds):
                holds = await holds
            if holds:
                return
            await asyncio.sleep(0.01)
