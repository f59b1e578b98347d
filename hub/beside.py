"""Work that takes milliseconds, done beside the event loop instead of in it.

One thread does all of it, in the order it came. Two that run Python would take turns
with each other as well as with the event loop, which then waits longer for its own.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

LARGE_BYTES: Final = 256 * 1024
"""Hashing, signing or decompressing so much is worth the way to the thread and back."""
MANY_ENTRIES: Final = 50
"""And so is whatever is done with each of so many entries."""
TURN_SECONDS: Final = 0.001
"""How long a thread may run Python while the event loop waits for its turn. There are a
handful of threads, and the loop waits for one after the other: with Python's own 5 ms
a feed of 1,500 new entries held it up for 80 ms, with this for 14."""

Result = TypeVar("Result")

_thread: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="beside")


def take_short_turns() -> None:
    """For the whole process; to be called once, at its start."""
    sys.setswitchinterval(TURN_SECONDS)


async def run_beside(work: Callable[[], Result]) -> Result:
    """What ``work`` returns or raises. Cancelling the call does not stop it."""
    return await asyncio.get_running_loop().run_in_executor(_thread, work)
