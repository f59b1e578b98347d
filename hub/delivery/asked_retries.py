"""Retries that somebody asked for, so that their requests are told from the
schedule's."""

from __future__ import annotations

from typing import Final

from storage.records import SubscriptionId

MOST_REMEMBERED: Final = 10_000


class AskedRetries:
    """Retries that were asked for and have not begun.

    They are remembered in memory only: after a restart, or if another node makes the
    request, it counts as one that new records brought forward.
    """

    def __init__(self, *, capacity: int = MOST_REMEMBERED) -> None:
        self._capacity = capacity
        self._asked = dict[SubscriptionId, None]()

    def note(self, subscription_id: SubscriptionId) -> None:
        """Note that a retry is asked for; the oldest is forgotten for it if there are
        too many."""
        self._asked.pop(subscription_id, None)
        self._asked[subscription_id] = None
        if len(self._asked) > self._capacity:
            del self._asked[next(iter(self._asked))]

    def forget(self, subscription_id: SubscriptionId) -> None:
        """There is no such retry, or it was under way when it was asked for."""
        self._asked.pop(subscription_id, None)

    def take(self, subscription_id: SubscriptionId) -> bool:
        """Whether what begins now was asked for; true once."""
        is_asked = subscription_id in self._asked
        self.forget(subscription_id)
        return is_asked
