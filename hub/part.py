"""What runs in the background of a hub, from its start to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

Part = Callable[[], Coroutine[Any, Any, None]]
"""Starts something that runs until it is cancelled."""


async def rest(woken: asyncio.Event, seconds: float | None) -> None:
    """Until it is set, or for so many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await woken.wait()
