"""Subscriptions that ended or were paused lately: deliveries claimed for them before
are not begun."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from storage.records import (
    ControlEvent,
    PauseChanged,
    Position,
    Subscription,
    SubscriptionId,
    SubscriptionsEnded,
)

CAPACITY: Final = 100_000
"""Endings, and pauses, that are remembered at most, and half as many at least; work
that waits so long is let go with the oldest. They take 18 bytes each."""


class _Marks:
    """A position for each of some subscriptions, in the order of their ids.

    Arrays, because a dictionary takes 140 bytes for each.
    """

    def __init__(self) -> None:
        self.ids = array("q")
        self._positions = array("q")

    def __len__(self) -> int:
        return len(self.ids)

    def set(self, subscription_id: SubscriptionId, position: Position) -> None:
        place = bisect_left(self.ids, subscription_id)
        if self._has(subscription_id, place):
            self._positions[place] = position
        else:
            self.ids.insert(place, subscription_id)
            self._positions.insert(place, position)

    def get(self, subscription_id: SubscriptionId) -> Position | None:
        place = bisect_left(self.ids, subscription_id)
        is_there = self._has(subscription_id, place)
        return Position(self._positions[place]) if is_there else None

    def discard(self, subscription_id: SubscriptionId) -> None:
        place = bisect_left(self.ids, subscription_id)
        if self._has(subscription_id, place):
            del self.ids[place], self._positions[place]

    def _has(self, subscription_id: SubscriptionId, place: int) -> bool:
        return place < len(self.ids) and self.ids[place] == subscription_id


class _RecentMarks:
    """The last ``capacity`` marks at most: when half as many are new, the older half is
    forgotten."""

    def __init__(self, capacity: int) -> None:
        self._half = capacity // 2
        self._new, self._old = _Marks(), _Marks()

    def set(self, subscription_id: SubscriptionId, position: Position) -> None:
        if len(self._new) >= self._half and self._new.get(subscription_id) is None:
            self._new, self._old = _Marks(), self._new
        self._new.set(subscription_id, position)

    def get(self, subscription_id: SubscriptionId) -> Position | None:
        if not self._new.ids and not self._old.ids:  # nearly always
            return None
        found = self._new.get(subscription_id)
        return self._old.get(subscription_id) if found is None else found

    def discard(self, subscription_id: SubscriptionId) -> None:
        self._new.discard(subscription_id)
        self._old.discard(subscription_id)


class HaltedSubscriptions:
    """Who is paused, and where in the log each was that ended.

    What is claimed for a subscription is of a record above where it began, and so it
    began below where it ended. One that begins anew begins there or above: it is owed
    nothing from before, but all from then on, however early that is claimed.
    """

    def __init__(self, *, capacity: int = CAPACITY) -> None:
        self._ended = _RecentMarks(capacity)
        self._paused = _RecentMarks(capacity)

    def note(self, event: ControlEvent) -> None:
        """Heed an event of the control log."""
        match event:
            case SubscriptionsEnded(ids, log_end):
                self.note_endings(ids, log_end)
            case PauseChanged(subscription_id, is_paused):
                self.note_pause(subscription_id, is_paused)
            case _:
                pass

    def note_endings(self, ids: Sequence[SubscriptionId], log_end: Position) -> None:
        """These have ended when the log reached to ``log_end``."""
        for each in ids:
            self._paused.discard(each)
            self._ended.set(each, log_end)

    def note_pause(self, subscription_id: SubscriptionId, is_paused: bool) -> None:
        if is_paused:
            self._paused.set(subscription_id, Position(0))
        else:
            self._paused.discard(subscription_id)

    def has_ended(self, subscription: Subscription) -> bool:
        """Whether it ended after it was read as it is here, with work to do."""
        ended = self._ended.get(subscription.id)
        return ended is not None and subscription.from_position < ended

    def is_paused(self, subscription: Subscription) -> bool:
        """Whether it was paused, and not resumed since."""
        return self._paused.get(subscription.id) is not None
