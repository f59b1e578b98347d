"""A queue in which parties take turns, however much each of them has waiting."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

Waiting = TypeVar("Waiting")


class FairQueue(Generic[Waiting]):
    """Whoever waits is behind one of each other party at a time, not behind all it has.

    ``party`` says whose each is. The queue keeps each party's own order.
    """

    def __init__(self, party: Callable[[Waiting], int]) -> None:
        self._party = party
        self._queues: dict[int, deque[Waiting]] = {}
        self._turns: deque[int] = deque()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, waiting: Iterable[Waiting]) -> None:
        """Behind what their party has."""
        for each in waiting:
            self._queue(self._party(each)).append(each)
            self._count += 1

    def put_back(self, waiting: Waiting) -> None:
        """Before what its party has."""
        self._queue(self._party(waiting)).appendleft(waiting)
        self._count += 1

    def take(self) -> Waiting:
        """The first of the party whose turn it is. Raises IndexError if none waits."""
        party = self._turns[0]
        queue = self._queues[party]
        if len(queue) == 1:
            self._turns.popleft()
            del self._queues[party]
        else:
            self._turns.rotate(-1)
        self._count -= 1
        return queue.popleft()

    def _queue(self, party: int) -> deque[Waiting]:
        queue = self._queues.get(party)
        if queue is None:
            queue = self._queues[party] = deque()
            self._turns.append(party)
        return queue
