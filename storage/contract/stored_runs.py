"""Runs of the WebSub playground."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Protocol

from storage.records import StoredRun


class PlaygroundStore(Protocol):
    async def save(self, runs: Collection[StoredRun]) -> None:
        """Store runs, replacing earlier versions of them."""
        ...

    async def remove(self, id: str) -> None:
        """Delete a run; does nothing if it is not stored."""
        ...

    async def since(self, used_from: datetime) -> list[StoredRun]:
        """Runs used since then, the last used first; all others are deleted, as is one
        that cannot be decrypted."""
        ...
