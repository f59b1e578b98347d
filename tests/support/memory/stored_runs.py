"""`storage.contract.PlaygroundStore` as a simple model."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from storage.records import StoredRun


class MemoryPlayground:
    def __init__(self) -> None:
        self._runs: dict[str, StoredRun] = {}

    async def save(self, runs: Collection[StoredRun]) -> None:
        self._runs |= {each.id: each for each in runs}

    async def remove(self, id: str) -> None:
        self._runs.pop(id, None)

    async def since(self, used_from: datetime) -> list[StoredRun]:
        kept = [each for each in self._runs.values() if each.used_at >= used_from]
        self._runs = {each.id: each for each in kept}
        return sorted(kept, key=lambda each: each.used_at, reverse=True)
