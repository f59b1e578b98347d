"""A bound on the bytes of all documents that are held at the same time.

Documents may be large, and many may arrive at a time, but not many large ones: while
they exceed the budget together, those that hold more than an equal share of it are
refused. So a document of usual size is never refused, however many endless ones arrive
with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class MemoryBudget:
    """A budget of ``most`` bytes; no more than twice as many are ever taken.

    ``refusal`` is raised by a document that must give way.
    """

    def __init__(
        self, most: int, refusal: Callable[[], Exception] = MemoryError
    ) -> None:
        self.most = most
        self.refusal = refusal
        self._reservations = 0
        self.taken = 0

    @contextmanager
    def reserve(self) -> Iterator[Reservation]:
        """A reservation for one document; what it took is free again when the block
        ends."""
        reservation = Reservation(self)
        self._reservations += 1
        try:
            yield reservation
        finally:
            self._reservations -= 1
            self.taken -= reservation.taken

    @property
    def fair_share(self) -> int:
        """The bytes each document may hold, whatever the others hold."""
        return self.most // max(1, self._reservations)


class Reservation:
    """The bytes that one document has taken of a budget."""

    __slots__ = ("_budget", "taken")

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self.taken = 0

    def take(self, count: int) -> None:
        """Take so many more bytes; they count even if the ``refusal`` is raised."""
        self.taken += count
        self._budget.taken += count
        budget = self._budget
        if budget.taken > budget.most and self.taken > budget.fair_share:
            raise budget.refusal()
