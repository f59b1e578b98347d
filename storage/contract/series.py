"""How the hub was over time."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from storage.records import SeriesSample


class SeriesStore(Protocol):
    """Samples by the time at which they begin; of each time there is one."""

    async def add(self, sample: SeriesSample, kept_from: datetime) -> None:
        """Keep a sample, in the place of another one of its time. Those of before
        ``kept_from`` and of after the new one go."""
        ...

    async def page(self, since: datetime, limit: int) -> list[SeriesSample]:
        """Samples from that time on, the oldest first."""
        ...
