"""The durable end of the log, and waiting until it moves."""

from __future__ import annotations

import asyncio

from storage.errors import StorageClosed
from storage.records import Position


class LogEnd:
    def __init__(self, position: Position) -> None:
        self._position = position
        self._moved = asyncio.Event()
        self._is_closed = False

    @property
    def position(self) -> Position:
        return self._position

    def advance(self, positions: tuple[Position, ...]) -> None:
        """Note that records at these positions have become durable."""
        if positions and positions[-1] > self._position:
            self._position = positions[-1]
            self._wake()

    def restart(self, position: Position) -> None:
        """Note that the log was replaced by another, which ends at ``position``."""
        self._position = position

    async def wait(self, after: Position, seconds: float) -> Position:
        """Return when the end is above ``after``, or after so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                while self._position <= after:
                    if self._is_closed:
                        raise StorageClosed("the database is closed")
                    await self._moved.wait()
        except TimeoutError:
            pass
        return self._position

    def close(self) -> None:
        self._is_closed = True
        self._wake()

    def _wake(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
