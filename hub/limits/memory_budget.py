"""How many bytes of documents may be under way at once, all of them together.

Each may be large, and many may come at a time, but not many large ones: while they take
more than the budget, those that hold more than an equal share of it are refused. So a
document of usual size is never refused, however many endless ones come with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class MemoryBudget:
    """``most`` bytes; never more than twice as many are taken.

    ``refusal`` is raised where somebody must give way.
    """

    def __init__(
        self, most: int, refusal: Callable[[], Exception] = MemoryError
    ) -> None:
        self._most = most
        self.refusal = refusal
        self._reservations = 0
        self.taken = 0

    @contextmanager
    def reserve(self) -> Iterator[Reservation]:
        """For one document, as long as it is held: what it took is free afterwards."""
        reservation = Reservation(self)
        self._reservations += 1
        try:
            yield reservation
        finally:
            self._reservations -= 1
            self.taken -= reservation.taken

    @property
    def fair_share(self) -> int:
        """Bytes that each may hold, whatever the others hold."""
        return self._most // max(1, self._reservations)

    @property
    def is_short(self) -> bool:
        return self.taken > self._most


class Reservation:
    """What one document has taken of a budget."""

    __slots__ = ("_budget", "taken")

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self.taken = 0

    def take(self, count: int) -> None:
        """So many bytes more; they count also where the ``refusal`` is raised."""
        self.taken += count
        self._budget.taken += count
        if self._budget.is_short and self.taken > self._budget.fair_share:
            raise self._budget.refusal()
