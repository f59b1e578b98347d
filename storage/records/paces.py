"""How fast a feed is asked, as a few classes: which of many overdue feeds goes first.

A feed that is overdue by its own period has four times the waiting that a poll is worth
(waiting grows with the square of the time), whatever the period. So feeds are ordered
by how late they are in units of their periods. A class is a power of two of seconds:
within one, that order is the order of time, and an index has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from storage.records.identities import FeedId

_MILLISECOND = timedelta(milliseconds=1)

Pace = int
"""The power of two, of seconds, that a period begins with: 0 to `PACES` - 1."""

PACES = 22
"""The last is for all periods from 24 days on."""
UNKNOWN_PACE: Pace = 11
"""Of a feed that was never planned, as if it were asked hourly: a million new feeds are
not to keep all others waiting, nor to wait until those have nothing to do."""

PlaceByPace = Mapping[Pace, tuple[datetime, FeedId]]
"""How far due feeds have been read: the last one of each pace; none where it is not
named."""


def pace_of(period: float) -> Pace:
    """Of a period in seconds; 0 is none yet."""
    if period <= 0:
        return UNKNOWN_PACE
    return min(max(int(period).bit_length() - 1, 0), PACES - 1)


def lateness(due: datetime, pace: Pace, now: datetime) -> float:
    """How late a feed is: milliseconds, over the power of two of its pace."""
    return (now - due) // _MILLISECOND / (1 << pace)
