"""`storage.contract.SeriesStore` as a simple model."""

from __future__ import annotations

from datetime import datetime

from storage.records import SeriesSample


class MemorySeries:
    def __init__(self) -> None:
        self._samples: list[SeriesSample] = []

    async def add(self, sample: SeriesSample, kept_from: datetime) -> None:
        kept = [each for each in self._samples if kept_from <= each.at < sample.at]
        self._samples = [*kept, sample]

    async def page(self, since: datetime, limit: int) -> list[SeriesSample]:
        return [each for each in self._samples if each.at >= since][:limit]
