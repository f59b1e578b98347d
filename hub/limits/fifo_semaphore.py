"""A bounded number of places, given out in the order of requests."""

from __future__ import annotations

import asyncio
from collections import deque


class FifoSemaphore:
    """`enter` takes a place; `leave` gives it to the longest waiter.

    Unlike with `asyncio.Semaphore`, taking a free place needs no step of the event
    loop.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.taken = 0

    def enter_at_once(self) -> bool:
        """Take a place if there is one and nobody waits for it."""
        if self.taken >= self._count:
            return False
        self.taken += 1
        return True

    async def enter(self, deadline: float) -> None:
        """Wait for a place until the deadline, in the loop's time. Raises
        `TimeoutError`."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout_at(deadline):
                await turn
        except (TimeoutError, asyncio.CancelledError):
            self._give_up(turn)
            raise

    def leave(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)  # the place goes on to the next as it is
                return
        self.taken -= 1

    def _give_up(self, turn: asyncio.Future[None]) -> None:
        if turn.done() and not turn.cancelled():
            self.leave()  # the place came just then
        elif turn in self._waiting:
            self._waiting.remove(turn)
