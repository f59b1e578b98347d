"""What all of the API has in common: the token, problems, limits."""

from __future__ import annotations

import base64
import logging
from collections.abc import AsyncIterator

import httpx2
import pytest

from hub.web.request_input import LARGEST_BODY
from tests.support.admin import ADMIN_LOGIN, TOKEN
from tests.support.services import Hub


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "authorization", [f"Bearer {TOKEN}", f"bearer {TOKEN}", f"Basic {ADMIN_LOGIN}"]
)
async def test_the_token_opens_the_api(
    anybody: httpx2.AsyncClient, authorization: str
) -> None:
    answer = await anybody.get("/api/feeds", headers={"Authorization": authorization})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer another"},
        {"Authorization": "Bearer "},
        {"Authorization": basic(f"root:{TOKEN}")},
        {"Authorization": basic("admin")},
        {"Authorization": "Basic ???"},
        {"Authorization": f"Digest {TOKEN}"},
    ],
)
@pytest.mark.parametrize("path", ["/api/feeds", "/api/nothing"])
async def test_without_the_token_nothing_opens(
    anybody: httpx2.AsyncClient, headers: dict[str, str], path: str
) -> None:
    answer = await anybody.get(path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith('Bearer realm="fanfare"')
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_request_another_site_caused_is_refused(
    client: httpx2.AsyncClient,
) -> None:
    for headers in (
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://hub.example"},
        {"Origin": "http://evil.example"},  # all that there is without https
        {"Origin": "http://hub.example:8080"},
        {"Origin": "null"},
        {"Origin": "http://["},
    ):
        answer = await client.post("/api/feeds/1/fetch", headers=headers)
        assert answer.status_code == 403, headers


async def test_a_request_of_the_hub_s_own_pages_is_answered(
    client: httpx2.AsyncClient,
) -> None:
    for headers in (
        {"Origin": "http://hub.example"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "https://outside.example"},
        {"Sec-Fetch-Site": "none"},
    ):
        answer = await client.post("/api/feeds/1/fetch", headers=headers)
        assert answer.status_code != 403, headers


@pytest.mark.parametrize(
    "path",
    [
        *("/nothing", "/api/nothing", "/api/feeds/1/dance"),
        *("/api", "/stream/", "/api/feeds/"),  # a slash more or less
    ],
)
async def test_an_unknown_path_is_a_problem(
    client: httpx2.AsyncClient, path: str
) -> None:
    answer = await client.get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"] == f"no such path: {path}"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/api/health", "GET, HEAD"),
        ("PUT", "/api/feeds", "GET, HEAD, POST"),
        ("PUT", "/api/feeds/1", "DELETE, GET, HEAD, PATCH"),
        ("OPTIONS", "/api/feeds/1/fetch", "POST"),
        ("GET", "/hub", "POST"),
        ("POST", "/stream", "GET, HEAD"),
        ("DELETE", "/", "GET, HEAD"),
    ],
)
async def test_an_unknown_method_names_all_those_there_are(
    client: httpx2.AsyncClient, method: str, path: str, allowed: str
) -> None:
    answer = await client.request(method, path)
    assert answer.status_code == 405
    assert answer.headers["allow"] == allowed
    assert answer.json()["detail"] == f"expected {allowed}, not {method}"


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"\xff", "application/json", 400),
        (b'{"url": "\xed\xa0\x80"}', "application/json", 400),
        (b"[]", "application/json", 422),
        (b"{}", "text/plain", 415),
        (b"{}", "", 415),
        (b" " * (LARGEST_BODY + 1), "application/json", 413),
    ],
)
async def test_a_body_that_is_not_what_it_should_be_is_refused(
    client: httpx2.AsyncClient, body: bytes, kind: str, status: int
) -> None:
    answer = await client.post(
        "/api/feeds", content=body, headers={"Content-Type": kind}
    )
    assert answer.status_code == status
    assert answer.json()["status"] == status


async def test_a_body_without_end_is_refused_when_it_is_too_large(
    client: httpx2.AsyncClient,
) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 65_536

    answer = await client.post(
        "/api/feeds", content=endless(), headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 413


async def test_a_database_that_cannot_write_is_503_and_logged(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    await hub.storage.close()
    answer = await client.post("/api/feeds", json={"url": "https://example.org/"})
    assert answer.status_code == 503
    assert answer.json()["title"] == "Service Unavailable"


async def test_a_fault_of_the_hub_says_nothing_of_itself(
    client: httpx2.AsyncClient, hub: Hub, caplog: pytest.LogCaptureFixture
) -> None:
    def break_down(_: object) -> object:
        raise RuntimeError("a secret detail")

    hub.poller.outcome = break_down  # type: ignore[assignment]
    with caplog.at_level(logging.CRITICAL):
        answer = await client.post("/api/feeds", json={"url": "https://example.org/"})
    assert answer.status_code == 500
    assert answer.json()["detail"] == "an internal error; the log has details"


@pytest.mark.parametrize(
    ("path", "body", "detail"),
    [
        (
            "/api/subscriptions",
            {"callback": "https://you.example/", "topic": "t", "format": "xml"},
            "format: expected one of json, atom, as-is, by-topic, not 'xml'",
        ),
        (
            "/api/tokens",
            {"account": "alice", "scopes": ["list", "fly"]},
            "scopes[1]: expected one of subscribe, unsubscribe, list, retrieve,"
            " admin, not 'fly'",
        ),
        ("/api/feeds", {"url": 5}, "url: expected `str`, got `int`"),
    ],
)
async def test_a_refusal_names_the_field_and_what_was_expected(
    client: httpx2.AsyncClient, path: str, body: dict[str, object], detail: str
) -> None:
    answer = await client.post(path, json=body)
    assert (answer.status_code, answer.json()["detail"]) == (422, detail)


@pytest.mark.parametrize("limit", ["0", "1001", "", "x", "-1"])
@pytest.mark.parametrize("path", ["feeds", "subscriptions", "tokens", "deliveries"])
async def test_a_page_has_a_length_within_bounds(
    client: httpx2.AsyncClient, path: str, limit: str
) -> None:
    answer = await client.get(f"/api/{path}?limit={limit}")
    assert (answer.status_code, answer.json()["field"]) == (422, "limit")
    assert "a whole number from 1 to 1000" in answer.json()["detail"]
