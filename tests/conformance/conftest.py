from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from storage.contract import Storage
from tests.support.memory.storage import MemoryStorage
from tests.support.new_database import open_new, open_new_postgres
from tests.support.storage_scene import Scene


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A module that the model does not know says so: ``IS_MODELLED = False``."""
    if "storage" not in metafunc.fixturenames:
        return
    engines = ["sqlite", "postgres"]
    if getattr(metafunc.module, "IS_MODELLED", True):
        engines.append("memory")
    metafunc.parametrize("storage", engines, indirect=True)


@pytest.fixture
async def storage(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[Storage]:
    """An empty one of each engine."""
    match request.param:
        case "memory":
            yield cast("Storage", MemoryStorage())
        case "postgres":
            async with open_new_postgres(tmp_path / "key") as opened:
                yield opened
        case _:
            storage = await open_new(tmp_path / "hub.db")
            yield storage
            await storage.close()


@pytest.fixture
def scene(storage: Storage) -> Scene:
    return Scene(storage)
