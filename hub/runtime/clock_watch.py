"""Detects a clock that went back, by the hub's own notes, and corrects stored times.

Every minute the time is noted in the database. A clock that then shows an earlier time
was wrong before or is wrong now. Either way the hub goes by the time it shows: stored
times are corrected (`storage.clock_steps`), and this is reported for a day.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Final

import structlog

from hub.core.durations import duration
from hub.runtime.clock import Clock
from storage.contract import Storage
from storage.errors import StorageError

LOOK_SECONDS: Final = 1.0
NOTE_SECONDS: Final = 60.0
TOLD_SECONDS: Final = 86_400.0
"""For how long it is reported that the clock went back."""
LEAST_LEAD: Final = 60.0
"""Seconds by which the hub must be ahead of the system's clock for this to be
reported."""

log = structlog.get_logger()


class ClockWatch:
    """``went_back`` is called when stored times were brought back."""

    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        went_back: Callable[[], None] = lambda: None,
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._went_back = went_back
        self._latest = clock.now()
        self._note_at = clock.monotonic()
        self._back = timedelta(0)
        self._told_until = 0.0

    @property
    def warning(self) -> str:
        """What an operator should know of the clock; "" when there is nothing."""
        lead = self._clock.lead()
        if lead >= LEAST_LEAD:
            return (
                f"the system's clock was set back by {_span(timedelta(seconds=lead))};"
                " the hub follows gradually"
            )
        if self._clock.monotonic() < self._told_until:
            return (
                f"the clock went back by {_span(self._back)}: stored times too far"
                " ahead were corrected"
            )
        return ""

    async def begin(self) -> None:
        """Correct stored times before anything waits for one. Raises `StorageError`."""
        self._latest = self._clock.now()
        await self._note()

    async def run(self) -> None:
        """Look at the clock until cancelled."""
        while True:
            try:
                await self.look()
            except StorageError as error:
                log.warning("time_not_noted", error=str(error))
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Note the time, if a note is due or the clock went back. Raises
        `StorageError`."""
        now = self._clock.now()
        if now < self._latest:  # what was written since the last note is as late
            await self._storage.note_time(self._latest)
        has_stepped = abs((now - self._latest).total_seconds()) > NOTE_SECONDS
        if has_stepped or self._clock.monotonic() >= self._note_at:
            await self._note()
        self._latest = now

    async def _note(self) -> None:
        back = await self._storage.note_time(self._clock.now())
        self._note_at = self._clock.monotonic() + NOTE_SECONDS
        if not back:
            return
        log.warning("clock_went_back", seconds=back.total_seconds())
        self._back = back
        self._told_until = self._clock.monotonic() + TOLD_SECONDS
        self._went_back()


def _span(back: timedelta) -> str:
    return duration(back.total_seconds())
