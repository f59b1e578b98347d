"""Subscriptions that ended lately: what was claimed for them before is not begun."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from storage.records import SubscriptionId

CAPACITY = 100_000
"""Endings that are remembered; work that waits so long is let go with the oldest."""


class Endings:
    """Counts endings, so that work remembers how many there were when it was claimed.

    One that ended and began anew is owed nothing from before, but all from then on.
    """

    def __init__(self, *, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._ended: OrderedDict[SubscriptionId, int] = OrderedDict()
        self._count = 0

    @property
    def count(self) -> int:
        return self._count

    def note(self, ids: Iterable[SubscriptionId]) -> None:
        """These have ended, now."""
        self._count += 1
        for each in ids:
            self._ended[each] = self._count
            self._ended.move_to_end(each)
        while len(self._ended) > self._capacity:
            self._ended.popitem(last=False)

    def has_ended(self, subscription_id: SubscriptionId, since: int) -> bool:
        """Whether it ended after ``count`` was ``since``."""
        return self._ended.get(subscription_id, 0) > since
