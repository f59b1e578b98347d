"""A queue in which parties take turns, however much each of them has waiting."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

Waiting = TypeVar("Waiting")
Result = TypeVar("Result")


class FairQueue(Generic[Waiting]):
    """A queue in which parties take turns, however many items each has waiting.

    ``party`` names the party of an item. Each party's own items stay in order.
    """

    def __init__(self, party: Callable[[Waiting], Hashable]) -> None:
        self._party = party
        self._queues: dict[Hashable, deque[Waiting]] = {}
        self._turns: deque[Hashable] = deque()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def of(self, party: Hashable) -> int:
        """How many items of a party wait."""
        return len(self._queues.get(party, ()))

    def add(self, waiting: Iterable[Waiting]) -> None:
        """Add items behind those that their parties have waiting."""
        for each in waiting:
            self._queue(self._party(each)).append(each)
            self._count += 1

    def put_back(self, waiting: Waiting) -> None:
        """Put an item in front of those that its party has waiting."""
        self._queue(self._party(waiting)).appendleft(waiting)
        self._count += 1

    def take(self) -> Waiting:
        """The first item of the party whose turn it is. Raises IndexError if none
        waits."""
        party = self._turns[0]
        queue = self._queues[party]
        if len(queue) == 1:
            self._turns.popleft()
            del self._queues[party]
        else:
            self._turns.rotate(-1)
        self._count -= 1
        return queue.popleft()

    def _queue(self, party: Hashable) -> deque[Waiting]:
        queue = self._queues.get(party)
        if queue is None:
            queue = self._queues[party] = deque()
            self._turns.append(party)
        return queue


class WaitingLineFull(Exception):
    """A party has so many calls waiting that no more of its calls are accepted."""


class FairThread:
    """A separate thread that runs the calls of all parties in turns. At most
    ``waiting`` calls of one party wait."""

    def __init__(self, name: str, *, waiting: int) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._most = waiting
        self._waiting: FairQueue[tuple[Hashable, asyncio.Future[None]]]
        self._waiting = FairQueue(lambda waiting: waiting[0])
        self._is_taken = False

    async def run(self, party: Hashable, work: Callable[[], Result]) -> Result:
        """Run ``work`` on the thread, and return or raise what it does. It should take
        only milliseconds: a party with more to do makes another call. Cancelling does
        not stop work that has begun. Raises `WaitingLineFull`."""
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
        if self._waiting.of(party) >= self._most:
            raise WaitingLineFull
        turn = asyncio.get_running_loop().create_future()
        self._waiting.add([(party, turn)])
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on()  # it came in the same moment
            raise

    def _pass_on(self) -> None:
        """Give the turn to the next one that has not given up."""
        self._is_taken = False
        while self._waiting:
            _party, turn = self._waiting.take()
            if not turn.done():
                self._is_taken = True
                turn.set_result(None)
                return
