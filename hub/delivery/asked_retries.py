"""Retries that somebody asked for, so that their requests are told from the
schedule's."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from storage.records import RetryingSubscription, SubscriptionId

MOST_REMEMBERED: Final = 10_000
_PRECISION: Final = timedelta(milliseconds=1)  # of the times in storage


class AskedRetries:
    """When retries were asked for that have not begun.

    They are remembered in memory only: after a restart, or if another node makes the
    request, it counts as one of the schedule.
    """

    def __init__(self, *, capacity: int = MOST_REMEMBERED) -> None:
        self._capacity = capacity
        self._moments = dict[SubscriptionId, datetime]()

    def note(self, subscription_id: SubscriptionId, at: datetime) -> None:
        """Note that a retry is made due at that moment; the oldest is forgotten for
        it if there are too many."""
        self._moments.pop(subscription_id, None)
        self._moments[subscription_id] = at
        if len(self._moments) > self._capacity:
            del self._moments[next(iter(self._moments))]

    def take(self, retrying: RetryingSubscription) -> bool:
        """Whether what begins now was asked for; true once.

        One that was under way when it was asked for has another time.
        """
        at = self._moments.pop(retrying.subscription.id, None)
        return at is not None and abs(retrying.next_try - at) <= _PRECISION
