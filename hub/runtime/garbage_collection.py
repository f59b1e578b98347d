"""When the garbage collector runs, and which objects it never looks at."""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Final

THRESHOLDS: Final = (10_000, 1, 100)
"""Of the three generations. The entries of one large feed are a hundred thousand
objects that need no collector. Python's own thresholds have it walk over all of them at
once, again and again; with these it looks at 30,000 at most, in some two milliseconds.
What some hundred deliveries under way consist of is fewer than the first threshold:
each is gone before the collector looks for it."""
EVERY: Final = 30.0
"""Seconds between two sweeps, at least."""
PAUSE_SHARE: Final = 500
"""A sweep comes no sooner than so many times what the one before it took."""


def freeze_startup() -> None:
    """Take all that start-up made out of the collector's sight.

    Modules, tables and settings live as long as the process. Walked over and over by
    full collections they cost a busy hub a tenth of its time.
    """
    gc.set_threshold(*THRESHOLDS)
    gc.collect()
    gc.freeze()


async def collect_periodically(
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Look at everything from time to time, until cancelled.

    What a connection was refers to itself in circles, and one that lasts a while is
    looked at again only after millions of other objects: by their number alone hours'
    worth of dead connections pile up. What the C library's allocator holds free goes
    back to the system, if it knows how: SQLite's pages leave holes between them.
    """
    give_back = getattr(ctypes.CDLL(None), "malloc_trim", lambda _: None)
    pause = EVERY
    while True:
        await sleep(pause)
        began = perf_counter()
        gc.collect()
        give_back(0)
        pause = max(EVERY, PAUSE_SHARE * (perf_counter() - began))
