"""Work that takes milliseconds, done beside the event loop instead of in it.

One thread does all of it, in the order it came. Two that run Python would take turns
with each other as well as with the event loop, which then waits longer for its own.
What works on more bytes than most has a second thread, so that what takes milliseconds
never waits for what takes seconds; and searches have one, in which accounts take turns.
"""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Final, TypeVar

LARGE_BYTES: Final = 256 * 1024
"""Hashing, signing or decompressing so much is worth the way to the thread and back."""
HUGE_BYTES: Final = 1024 * 1024
"""Work on more than this is for the second thread."""
MANY_ENTRIES: Final = 50
"""And so is whatever is done with each of so many entries."""
TURN_SECONDS: Final = 0.0001
"""How long a thread may run Python while the event loop waits for its turn. There are a
handful of threads, and the loop waits for one after the other. Who waits begins to
count anew whenever the interpreter was free for a moment and somebody else was quicker:
beside a thread that gives it up more often than that (each hash of over 2,047 bytes
does) the loop would wait for as long as that goes on."""

Result = TypeVar("Result")

_thread: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="beside")
_long_thread: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="long")


def take_short_turns() -> None:
    """For the whole process; to be called once, at its start."""
    sys.setswitchinterval(TURN_SECONDS)


async def run_in_thread(work: Callable[[], Result], size: int = 0) -> Result:
    """What ``work`` returns or raises. Cancelling the call does not stop it.

    ``size``: the bytes it works on, unpacked, as far as they are known.
    """
    thread = _long_thread if size > HUGE_BYTES else _thread
    return await asyncio.get_running_loop().run_in_executor(thread, work)


class WaitingLineFull(Exception):
    """So many calls of one party wait for their turn that no more are taken."""


class FairThread:
    """A thread of its own whose turns go round among parties, however many calls each
    of them has. At most ``waiting`` calls of one party wait."""

    def __init__(self, name: str, *, waiting: int) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._most = waiting
        self._waiting: OrderedDict[Hashable, deque[asyncio.Future[None]]]
        self._waiting = OrderedDict()
        self._is_taken = False

    async def run(self, party: Hashable, work: Callable[[], Result]) -> Result:
        """What ``work`` returns or raises, which is to take milliseconds: who has more
        to do calls once more. Cancelling the call does not stop work that has begun.

        Raises `WaitingLineFull`.
        """
        async with self._turn(party):
            loop = asyncio.get_running_loop()
            working = loop.run_in_executor(self._thread, work)
            try:
                return await asyncio.shield(working)
            except asyncio.CancelledError:
                await asyncio.wait([working])  # the thread is free only then
                raise

    @asynccontextmanager
    async def _turn(self, party: Hashable) -> AsyncIterator[None]:
        if self._is_taken:
            await self._wait(party)
        self._is_taken = True
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, party: Hashable) -> None:
        line = self._waiting.setdefault(party, deque())
        if len(line) >= self._most:
            raise WaitingLineFull
        turn = asyncio.get_running_loop().create_future()
        line.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on()  # it came in the same moment
            raise

    def _pass_on(self) -> None:
        """To the next party, whose calls after this one wait behind those of others."""
        self._is_taken = False
        while self._waiting:
            party, line = self._waiting.popitem(last=False)
            turn = line.popleft()
            if line:
                self._waiting[party] = line
            if not turn.done():
                self._is_taken = True
                turn.set_result(None)
                return
