from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.open_hub import OpenHubScene, open_hub_scene


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[OpenHubScene]:
    async with open_hub_scene(tmp_path) as scene:
        yield scene
