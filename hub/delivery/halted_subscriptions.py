"""Subscriptions that ended or were paused lately: deliveries claimed for them before
are not begun."""

from __future__ import annotations

from collections.abc import Sequence

from hub.runtime.caching import BoundedDict
from storage.records import Position, Subscription, SubscriptionId

CAPACITY = 100_000
"""Endings and pauses that are remembered; work that waits so long is let go with the
oldest."""


class HaltedSubscriptions:
    """Who is paused, and where in the log each was that ended.

    What is claimed for a subscription is of a record above where it began, and so it
    began below where it ended. One that begins anew begins there or above: it is owed
    nothing from before, but all from then on, however early that is claimed.
    """

    def __init__(self, *, capacity: int = CAPACITY) -> None:
        self._ended: BoundedDict[SubscriptionId, Position] = BoundedDict(capacity)
        self._paused: BoundedDict[SubscriptionId, None] = BoundedDict(capacity)

    def note_endings(self, ids: Sequence[SubscriptionId], head: Position) -> None:
        """These have ended when the log reached to ``head``."""
        for each in ids:
            self._paused.pop(each, None)
            self._ended[each] = head

    def note_pause(self, subscription_id: SubscriptionId, is_paused: bool) -> None:
        if is_paused:
            self._paused[subscription_id] = None
        else:
            self._paused.pop(subscription_id, None)

    def has_ended(self, subscription: Subscription) -> bool:
        """Whether it ended after it was read as it is here, with work to do."""
        ended = self._ended.get(subscription.id)
        return ended is not None and subscription.from_position < ended

    def is_paused(self, subscription: Subscription) -> bool:
        """Whether it was paused, and not resumed since."""
        return subscription.id in self._paused
