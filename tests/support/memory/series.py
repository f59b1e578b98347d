"""`storage.contract.SeriesStore` as a simple model."""

from __future__ import annotations

from datetime import datetime

from storage.records import SeriesSample


class MemorySeries:
    def __init__(self) -> None:
        self._samples: dict[bool, list[SeriesSample]] = {False: [], True: []}

    async def add(
        self, sample: SeriesSample, kept_from: datetime, *, is_fine: bool = False
    ) -> None:
        known = self._samples[is_fine]
        kept = [each for each in known if kept_from <= each.at < sample.at]
        self._samples[is_fine] = [*kept, sample]

    async def page(
        self, since: datetime, limit: int, *, is_fine: bool = False
    ) -> list[SeriesSample]:
        return [each for each in self._samples[is_fine] if each.at >= since][:limit]
