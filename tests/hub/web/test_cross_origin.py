"""Pages of origins that are named may use the API with a token that they know."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from tests.support.admin import ADMIN
from tests.support.application_client import client_of
from tests.support.services import Hub, open_hub

APP, OTHER = "https://app.example", "https://evil.example"
PREFLIGHT = {"Access-Control-Request-Method": "POST"}


@pytest.fixture(params=[(APP,), ("*",)])
async def hub(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Hub]:
    async with open_hub(tmp_path, api_origins=request.param) as hub:
        yield hub


async def test_a_browser_asks_first_and_is_let(anybody: httpx2.AsyncClient) -> None:
    answer = await anybody.options("/api/feeds", headers={"Origin": APP, **PREFLIGHT})
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == APP
    assert "PATCH" in answer.headers["access-control-allow-methods"]
    assert "Authorization" in answer.headers["access-control-allow-headers"]
    assert "access-control-allow-credentials" not in answer.headers


async def test_its_page_reads_the_answer(anybody: httpx2.AsyncClient) -> None:
    headers = {"Origin": APP, "Sec-Fetch-Site": "cross-site", **ADMIN}
    answer = await anybody.get("/api/feeds", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == APP
    assert "Origin" in answer.headers["vary"]
    assert "RateLimit" in answer.headers["access-control-expose-headers"]


async def test_without_a_token_it_reads_why_not(anybody: httpx2.AsyncClient) -> None:
    answer = await anybody.get("/api/feeds", headers={"Origin": APP})
    assert answer.status_code == 401
    assert answer.headers["access-control-allow-origin"] == APP


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/api/nothing", 404), ("PUT", "/api/feeds", 405)],
)
async def test_what_is_not_there_is_told_to_it_too(
    anybody: httpx2.AsyncClient, method: str, path: str, status: int
) -> None:
    answer = await anybody.request(method, path, headers={"Origin": APP, **ADMIN})
    assert answer.status_code == status
    assert answer.headers["access-control-allow-origin"] == APP


async def test_pages_of_other_origins_are_refused(tmp_path: Path) -> None:
    async with open_hub(tmp_path, api_origins=(APP,)) as hub:
        headers = {"Origin": OTHER, "Sec-Fetch-Site": "cross-site", **ADMIN}
        asked = {"Origin": OTHER, **PREFLIGHT}
        async with client_of(hub.application) as client:
            answer = await client.get("/api/feeds", headers=headers)
            preflight = await client.options("/api/feeds", headers=asked)
    assert (answer.status_code, preflight.status_code) == (403, 403)
    for each in (answer, preflight):
        assert "access-control-allow-origin" not in each.headers
        assert "Origin" in each.headers["vary"]


async def test_what_a_browser_sends_by_itself_is_not_taken_from_them(
    anybody: httpx2.AsyncClient,
) -> None:
    """A form needs no preflight, and stored Basic credentials go along with it."""
    headers = {"Origin": APP, "Sec-Fetch-Site": "cross-site"}
    login = httpx2.BasicAuth("admin", ADMIN["Authorization"].partition(" ")[2])
    answer = await anybody.post("/api/feeds/1/pause", headers=headers, auth=login)
    assert answer.status_code == 403
    assert "Bearer" in answer.json()["detail"]


async def test_only_the_api_is_open_to_them(anybody: httpx2.AsyncClient) -> None:
    answer = await anybody.get("/metrics", headers={"Origin": APP})
    assert "access-control-allow-origin" not in answer.headers
