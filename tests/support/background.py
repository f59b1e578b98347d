"""Parts that run until they are cancelled, for as long as a test needs them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hub.runtime.background import BackgroundTask


@asynccontextmanager
async def in_background(part: BackgroundTask) -> AsyncIterator[None]:
    """Fails if the part has ended by itself before, and with what made it."""
    task = asyncio.create_task(part())
    try:
        yield
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
