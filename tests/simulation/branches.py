"""Branches of time: a database that was put in place goes on from where it was copied.

Each life belongs to one: what it descends from, without what was forgotten. On its own
branch a hub keeps all of its promises.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tests.support.oracle import Kill
from tests.support.subscribers import Subscriber

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Branch:
    """``intervals`` of the loop's time, the last of which may go on. ``kills``: what
    was under way at a backup is for its heirs as if it had been cut off by a kill."""

    intervals: tuple[Interval, ...] = ((0.0, math.inf),)
    kills: Mapping[str, Kill] = field(default_factory=dict)

    def until(self, moment: float) -> Branch:
        *before, (began, _end) = self.intervals
        return replace(self, intervals=(*before, (began, moment)))

    def again_from(self, moment: float) -> Branch:
        return replace(self, intervals=(*self.intervals, (moment, math.inf)))

    def history(self, subscriber: Subscriber) -> Subscriber:
        """What belongs to it of what a subscriber received.

        A hub that goes on from a backup names its notifications by another epoch, but
        each by the same place and subscription as before.
        """
        receipts = [
            replace(each, delivery_id=each.delivery_id.partition("-")[2])
            for each in subscriber.receipts
            if any(began <= each.started <= end for began, end in self.intervals)
        ]
        return replace(subscriber, receipts=receipts)
