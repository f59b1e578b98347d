"""Runs of the WebSub playground."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Protocol

from storage.records import StoredRun


class PlaygroundStore(Protocol):
    async def save(self, runs: Collection[StoredRun]) -> None:
        """Keep runs, in the place of what was kept of them."""
        ...

    async def remove(self, id: str) -> None:
        """Also of one that is not kept."""
        ...

    async def since(self, used_from: datetime) -> list[StoredRun]:
        """Those used since then, the last used one first; the others go. One that
        cannot be decrypted goes, too."""
        ...
