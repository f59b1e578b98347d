from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from structlog.testing import capture_logs

from tests.support.admin import ADMIN
from tests.support.application_client import client_of
from tests.support.services import open_hub


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    async with (
        open_hub(tmp_path, access_log="on") as hub,
        client_of(hub.application) as client,
    ):
        yield client


@pytest.mark.parametrize(
    ("method", "url", "line"),
    [
        ("GET", "/healthz", "GET /healthz 200"),
        ("GET", "/api/feeds?after=7", "GET /api/feeds 200"),
        ("POST", "/api/feeds/9/fetch", "POST /api/feeds/9/fetch 404"),
        ("GET", "/stream?token=geheim&topic=x", "GET /stream 4"),
        ("GET", "/upstream/geheim?hub.mode=subscribe", "GET /upstream/… 404"),
        ("GET", "/hub/subscriptions/geheim", "GET /hub/subscriptions/… 404"),
    ],
)
async def test_a_request_is_a_line_without_what_may_be_secret(
    client: httpx2.AsyncClient, method: str, url: str, line: str
) -> None:
    with capture_logs() as lines:
        answer = await client.request(method, url, headers=ADMIN)
    (logged,) = [each for each in lines if each.get("kind") == "access"]
    assert logged["event"].startswith(line)
    assert logged["bytes"] == len(answer.content)
    assert logged["milliseconds"] >= 0
    assert "geheim" not in repr(lines)


async def test_no_request_is_a_line_by_default(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub, client_of(hub.application) as client:
        with capture_logs() as lines:
            await client.get("/healthz")
    assert lines == []
