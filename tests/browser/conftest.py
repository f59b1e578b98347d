from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.support.browsed_hubs import BrowsedHub, Kind, open_browsed_hub
from tests.support.chromium import open_chromium


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    async with open_chromium() as browser:
        yield browser


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=[*Kind])
async def browsed(
    request: pytest.FixtureRequest,
    chromium: Browser,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[BrowsedHub]:
    directory = tmp_path_factory.mktemp(request.param)
    async with open_browsed_hub(request.param, chromium, directory) as browsed:
        yield browsed
