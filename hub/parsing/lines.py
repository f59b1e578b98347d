"""Documents that wait for a worker, in the order they came."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from protocols.errors import LimitExceeded


class Line:
    """Of those in it ``workers`` have their turn at a time; ``most`` wait, which have
    ``most_bytes`` together, or one does that has more, each for ``seconds``."""

    def __init__(
        self,
        *,
        workers: int,
        most: int,
        most_bytes: int | None = None,
        seconds: float | None = None,
    ) -> None:
        self._turns = asyncio.Semaphore(workers)
        self._most = most
        self._most_bytes = most_bytes
        self._seconds = seconds
        self._waiting = 0
        self._bytes = 0

    @asynccontextmanager
    async def turn(self, size: int) -> AsyncIterator[None]:
        """Entered when it has come. Raises `LimitExceeded` if too many wait, or it
        does not come in time."""
        await self._wait(size)
        try:
            yield
        finally:
            self._turns.release()

    async def _wait(self, size: int) -> None:
        if self._waiting >= self._most:
            raise LimitExceeded("documents waiting to be parsed", self._most)
        most_bytes = self._most_bytes
        if most_bytes and self._waiting and self._bytes + size > most_bytes:
            raise LimitExceeded("bytes of documents waiting to be parsed", most_bytes)
        self._waiting += 1
        self._bytes += size
        try:
            async with asyncio.timeout(self._seconds):
                await self._turns.acquire()
        except TimeoutError:
            what = "the seconds to wait until the document is parsed"
            raise LimitExceeded(what, round(self._seconds or 0)) from None
        finally:
            self._waiting -= 1
            self._bytes -= size
