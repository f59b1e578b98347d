"""The clock, which is given to everything that needs the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Final, Protocol

SLEW: Final = 0.1
"""A clock that was set is followed so much faster or slower, seconds for a second."""
LARGEST_STEP: Final = 86_400.0
"""Seconds. A clock that was set by more has been wrong, and is followed at once."""


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
        """Seconds by which it is ahead of a system whose clock was set back."""
        ...


_awake_and_asleep: Final = partial(
    time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
)
"""Seconds that never go back, and go on while the machine sleeps."""


class SystemClock:
    """The system's; but when that is set, the hub follows it little by little.

    Leases, retries and polls are kept as times of the day. Were these to jump an hour
    ahead, all that is under way would be taken for abandoned and sent once more; an
    hour back, and nothing would be sent for an hour. So an hour is made up for in ten.
    ``wall`` is the time of the day, ``steady`` goes on evenly; both are in seconds.
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
