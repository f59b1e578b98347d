"""The clock, which is passed to everything that needs the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Final, Protocol

SLEW: Final = 0.1
"""How much faster or slower the hub's clock runs to catch up with a system clock that
was set, in seconds for a second."""
LARGEST_STEP: Final = 86_400.0
"""Seconds. If the system clock was set by more, it was wrong before, and is followed at
once."""


class Clock(Protocol):
    def now(self) -> datetime:
        """Aware UTC wall-clock time."""
        ...

    def unix(self) -> float:
        """Like `now`, in Unix seconds."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...

    def lead(self) -> float:
        """Seconds by which this clock is ahead of a system clock that was set back."""
        ...


_awake_and_asleep: Final = partial(
    time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
)
"""Seconds that never go back, and go on while the machine sleeps."""


class SystemClock:
    """The system's clock; but when that is set, the hub follows it little by little.

    Leases, retries and polls are stored as times of day. If these jumped an hour ahead,
    all that is under way would be taken for abandoned and sent once more; if an hour
    back, nothing would be sent for an hour. So an hour is made up for in ten. ``wall``
    returns the time of day, ``steady`` advances evenly; both are in seconds.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = _awake_and_asleep,
    ) -> None:
        self._wall = wall
        self._steady = steady
        self._last = wall(), steady()  # one value, for it is read by several threads

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.unix(), UTC)

    def unix(self) -> float:
        wall, steady = self._wall(), self._steady()
        shown, since = self._last
        elapsed = max(0.0, steady - since)
        gap = wall - (shown + elapsed)
        most = SLEW * elapsed
        if not -most <= gap <= most and abs(gap) <= LARGEST_STEP:
            wall = shown + elapsed + (most if gap > 0 else -most)
        self._last = wall, steady
        return wall

    def lead(self) -> float:
        shown, since = self._last
        return shown + max(0.0, self._steady() - since) - self._wall()

    def monotonic(self) -> float:
        return time.monotonic()
