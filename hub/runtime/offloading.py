"""Work that takes milliseconds, done in a thread beside the event loop.

One thread does all of it, in order. Two threads that run Python would take turns with
each other as well as with the event loop, which would wait longer. Work on unusually
many bytes has a second thread, so that milliseconds never wait for seconds.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

LARGE_BYTES: Final = 256 * 1024
"""From this size on, hashing, signing or decompressing is worth the switch to a
thread."""
HUGE_BYTES: Final = 1024 * 1024
"""Work on more bytes than this is done by the second thread."""
MANY_ENTRIES: Final = 50
"""Work on each of so many entries also goes to a thread."""
TURN_SECONDS: Final = 0.0001
"""How long a thread may run Python while the event loop waits for the interpreter.

There are a handful of threads, and the loop waits for one after the other. A waiter
starts counting anew whenever the interpreter was free for a moment and another thread
was quicker: beside a thread that gives it up more often than that (each hash of over
2,047 bytes does) the loop would wait until that thread is done.
"""

Result = TypeVar("Result")

_thread: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="beside")
_long_thread: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="long")


def take_short_turns() -> None:
    """Set `TURN_SECONDS` for the whole process; call it once, at the start."""
    sys.setswitchinterval(TURN_SECONDS)


async def run_by_size(
    work: Callable[[], Result], size: int, entries: int = 0
) -> Result:
    """Do ``work`` on so many bytes, or with so many entries: at once if that is short,
    else in a thread."""
    if size > LARGE_BYTES or entries > MANY_ENTRIES:
        return await run_in_thread(work, size)
    return work()


async def run_in_thread(work: Callable[[], Result], size: int = 0) -> Result:
    """Do ``work``, and return or raise what it does. Cancelling does not stop it.

    ``size``: the bytes it works on, unpacked, as far as they are known.
    """
    thread = _long_thread if size > HUGE_BYTES else _thread
    return await asyncio.get_running_loop().run_in_executor(thread, work)
