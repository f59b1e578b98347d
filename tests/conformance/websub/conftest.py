from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.websub import WebSubScene, websub_scene


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[WebSubScene]:
    """One hub for all tests of a file; each has topics and callbacks of its own."""
    async with websub_scene(tmp_path_factory.mktemp("hub")) as scene:
        yield scene
