"""A clock that only moves when a test says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class ManualClock:
    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._elapsed = 0.0

    def now(self) -> datetime:
        return self._now

    def unix(self) -> float:
        return self._now.timestamp()

    def monotonic(self) -> float:
        return self._elapsed

    def lead(self) -> float:
        return 0.0

    def set_back(self, seconds: float) -> None:
        self._now -= timedelta(seconds=seconds)

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        self._elapsed += seconds

    async def sleep(self, seconds: float) -> None:
        """Advance the clock at once, instead of sleeping."""
        self.advance(seconds)
