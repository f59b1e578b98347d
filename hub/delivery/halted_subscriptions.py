"""Subscriptions that ended or were paused lately. Deliveries claimed for them before
that do not begin."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from storage.records import (
    ControlEvent,
    DecisionsMissed,
    PauseChanged,
    Position,
    Subscription,
    SubscriptionId,
    SubscriptionsEnded,
)

CAPACITY: Final = 100_000
"""How many endings, and how many pauses, are remembered at most; half as many at least.
When the oldest are forgotten, work that still waits for them is done anyway. Each takes
18 bytes."""


class _Marks:
    """Positions by subscription, in the order of subscription ids.

    Arrays are used because a dictionary takes 140 bytes for each subscription.
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
    """The last marks, ``capacity`` of them at most: when half as many new ones have
    come, the older half is forgotten."""

    def __init__(self, capacity: int) -> None:
        self._half = capacity // 2
        self._new, self._old = _Marks(), _Marks()

    def set(self, subscription_id: SubscriptionId, position: Position) -> None:
        if len(self._new) >= self._half and self._new.get(subscription_id) is None:
            self._new, self._old = _Marks(), self._new
        self._new.set(subscription_id, position)

    def get(self, subscription_id: SubscriptionId) -> Position | None:
        if not self._new.ids and not self._old.ids:  # the usual case, answered quickly
            return None
        found = self._new.get(subscription_id)
        return self._old.get(subscription_id) if found is None else found

    def discard(self, subscription_id: SubscriptionId) -> None:
        self._new.discard(subscription_id)
        self._old.discard(subscription_id)


class HaltedSubscriptions:
    """Which subscriptions are paused, and where in the log others ended.

    Work is claimed for a subscription only above the position where it began, and so it
    began below the position where it ended. A subscription that begins anew begins at
    that position or above. It is owed no record from before, but all records from then
    on, even those that are claimed at once.
    """

    def __init__(self, *, capacity: int = CAPACITY) -> None:
        self._ended = _RecentMarks(capacity)
        self._paused = _RecentMarks(capacity)
        self.decisions_missed = 0
        """How often decisions could not be read: what was read of subscriptions before
        the last of them is to be read anew."""

    def note(self, event: ControlEvent) -> None:
        """Note an ending or a pause that the control log tells of."""
        match event:
            case SubscriptionsEnded(ids, log_end):
                self.note_endings(ids, log_end)
            case PauseChanged(subscription_id, is_paused):
                self.note_pause(subscription_id, is_paused)
            case DecisionsMissed():
                self.decisions_missed += 1
            case _:
                pass

    def note_endings(self, ids: Sequence[SubscriptionId], log_end: Position) -> None:
        """Note that these subscriptions ended when the log reached to ``log_end``."""
        for each in ids:
            self._paused.discard(each)
            self._ended.set(each, log_end)

    def note_pause(self, subscription_id: SubscriptionId, is_paused: bool) -> None:
        if is_paused:
            self._paused.set(subscription_id, Position(0))
        else:
            self._paused.discard(subscription_id)

    def has_ended(self, subscription: Subscription) -> bool:
        """Whether the subscription ended after this copy of it was read with its
        work."""
        ended = self._ended.get(subscription.id)
        return ended is not None and subscription.from_position < ended

    def is_paused(self, subscription: Subscription) -> bool:
        """Whether the subscription was paused, and not resumed since."""
        return self._paused.get(subscription.id) is not None
