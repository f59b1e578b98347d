"""Collections under way in all visits, a few at a time; and what a visit has time for.

A file that takes all of a visit by itself cannot be used. One for which others have
left too little time is for the next visit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from hub.core.fetched import Fetched
from hub.core.sites.bounds import Spent
from hub.core.sites.steps import Downloaded, Unrolled
from hub.polling.spool import OutOfTime, Spool
from protocols.errors import LimitExceeded
from protocols.scp.reading.heads import HeadRules

MOST_SPOOLS: Final = 2
"""At a time: each may take a GiB of disk."""
TURN_SECONDS: Final = 60.0
"""As long a visit waits for the others, before it is put off."""


class Spools:
    """`open` one, and `close` it: until then it takes one of ``most`` turns."""

    def __init__(self, most: int = MOST_SPOOLS, seconds: float = TURN_SECONDS) -> None:
        self._turns = asyncio.Semaphore(most)
        self._seconds = seconds

    async def open(self, rules: HeadRules, is_over: Callable[[], bool]) -> Spool | None:
        """None if no turn comes in time."""
        try:
            async with asyncio.timeout(self._seconds):
                await self._turns.acquire()
        except TimeoutError:
            return None
        return Spool(rules, is_over)

    def close(self, spool: Spool) -> None:
        """Once for each."""
        try:
            spool.close()
        finally:
            self._turns.release()


async def verify(spool: Spool, fetched: Fetched, spent: Spent) -> Downloaded | bool:
    """See `Spool.verify`; False if the visit has no time left for it."""
    try:
        return await spool.verify(fetched)
    except OutOfTime:
        is_alone = spent.requests == 1
        return is_alone and Downloaded(fetched=fetched, error=_too_slow(spent))


async def unroll(spool: Spool | None, after: int, spent: Spent) -> Unrolled | bool:
    """See `Spool.unroll`; False as above."""
    if spool is None:
        raise AssertionError("no collection was downloaded")
    try:
        return await spool.unroll(after)
    except OutOfTime:
        is_alone = spent.requests == 1 and not spool.has_unrolled
        error = str(_too_slow(spent))
        return is_alone and Unrolled(pages=(), line=after, error=error)


def _too_slow(spent: Spent) -> LimitExceeded:
    what = "the time to read the file, in seconds,"
    return LimitExceeded(what, round(spent.bounds.seconds))
