from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.memory.storage import MemoryStorage
from tests.support.new_database import open_new
from tests.support.storage_scene import Scene


@pytest.fixture(params=["sqlite", "memory"])
async def scene(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Scene]:
    """An empty storage of each engine."""
    if request.param == "memory":
        yield Scene(MemoryStorage())
        return
    storage = await open_new(tmp_path / "hub.db")
    try:
        yield Scene(storage)
    finally:
        await storage.close()
