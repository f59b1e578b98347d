"""Samples of how the hub behaved over time."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from storage.records import SeriesSample


class SeriesStore(Protocol):
    """Samples by the time at which they begin; there is one for each time.

    ``is_fine``: those of shorter spans of time, which are kept apart.
    """

    async def add(
        self, sample: SeriesSample, kept_from: datetime, *, is_fine: bool = False
    ) -> None:
        """Keep a sample, replacing an earlier one of its time. Samples from before
        ``kept_from`` and after the new one are deleted."""
        ...

    async def page(
        self, since: datetime, limit: int, *, is_fine: bool = False
    ) -> list[SeriesSample]:
        """Samples from that time on, the oldest first."""
        ...
