from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from tests.support.admin import ADMIN
from tests.support.application_client import client_of
from tests.support.services import Hub, open_hub


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with open_hub(tmp_path) as hub:
        yield hub


@pytest.fixture
async def anybody(hub: Hub) -> AsyncIterator[httpx2.AsyncClient]:
    """A client without the token."""
    async with client_of(hub.application) as client:
        yield client


@pytest.fixture
def client(anybody: httpx2.AsyncClient) -> httpx2.AsyncClient:
    """A client with the token."""
    anybody.headers.update(ADMIN)
    return anybody
