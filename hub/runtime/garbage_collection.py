"""When the garbage collector runs, and which objects it never looks at."""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Final

THRESHOLDS: Final = (10_000, 1, 100)
"""Thresholds of the three generations. The entries of one large feed are a hundred
thousand objects that are freed without a collector. With Python's own thresholds it
would walk over all of them again and again; with these it looks at 30,000 at most, in
some two milliseconds. A hundred deliveries under way have fewer objects than the first
threshold: they are freed before the collector looks at them."""
EVERY: Final = 30.0
"""Seconds between two sweeps, at least."""
PAUSE_SHARE: Final = 500
"""The pause between two sweeps is at least this many times the duration of the
first."""


def freeze_startup() -> None:
    """Exclude all objects made during start-up from collection.

    Modules, tables and settings live as long as the process. Walking over them in full
    collections costs a busy hub a tenth of its time.
    """
    gc.set_threshold(*THRESHOLDS)
    gc.collect()
    gc.freeze()


async def collect_periodically(
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Run a full collection from time to time, until cancelled.

    A closed connection refers to itself in cycles, and one that lasted a while is
    looked at again only after millions of other objects: by numbers alone, hours' worth
    of dead connections pile up. Memory that the C library's allocator holds free is
    returned to the system, where supported: SQLite's pages leave holes between them.
    """
    give_back = getattr(ctypes.CDLL(None), "malloc_trim", lambda _: None)
    pause = EVERY
    while True:
        await sleep(pause)
        began = perf_counter()
        gc.collect()
        give_back(0)
        pause = max(EVERY, PAUSE_SHARE * (perf_counter() - began))
