"""Rate limits: who is counted, and what the refused are told."""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from starlette.requests import HTTPConnection
from structlog.testing import capture_logs

from hub.limits.token_bucket import per_minute
from hub.services.token_authentication import CreateToken
from hub.web.problems import PROBLEM_TYPE as PROBLEM
from hub.web.problems import Problem
from hub.web.rate_limits import RateLimits, RequestLimits, client_address
from storage.records import TokenScope
from tests.support.admin import ADMIN
from tests.support.clock import ManualClock
from tests.support.services import Hub, open_hub

HTML = "text/html; charset=utf-8"


def connection(peer: str, *forwarded: str) -> HTTPConnection:
    headers = [(b"x-forwarded-for", each.encode()) for each in forwarded]
    return HTTPConnection(
        {"type": "http", "headers": headers, "client": (peer, 1) if peer else None}
    )


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    """One where two requests at once are as many as may be."""
    async with open_hub(tmp_path, rate_limit_token=12, rate_limit_address=12) as hub:
        yield hub


async def statuses(
    client: httpx2.AsyncClient, path: str, headers: dict[str, str] | None = None
) -> list[int]:
    return [(await client.get(path, headers=headers)).status_code for _ in range(3)]


@pytest.mark.parametrize(
    ("path", "usual"), [("/nothing", 404), ("/api/feeds", 401), ("/api/nothing", 401)]
)
async def test_an_address_without_a_token_is_told_when_to_try_again(
    anybody: httpx2.AsyncClient, hub: Hub, path: str, usual: int
) -> None:
    assert await statuses(anybody, path) == [usual, usual, 429]
    refused = await anybody.get(path)
    assert refused.headers["retry-after"] == "5"
    assert refused.headers["content-type"] == "application/problem+json"
    assert "address" in refused.json()["detail"]
    hub.clock.advance(5)
    assert (await anybody.get(path)).status_code == usual


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/nothing", "text/html; charset=utf-8"), ("/api/feeds", PROBLEM)],
)
async def test_a_browser_gets_a_page_that_says_when_to_try_again(
    anybody: httpx2.AsyncClient, path: str, kind: str
) -> None:
    browser = {"Accept": "text/html,*/*;q=0.8"}
    await statuses(anybody, path)
    refused = await anybody.get(path, headers=browser)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
    assert refused.headers["content-type"] == kind


@pytest.mark.parametrize("path", ["/nothing", "/api/openapi.json"])
async def test_an_answer_says_how_much_is_left(
    anybody: httpx2.AsyncClient, hub: Hub, path: str
) -> None:
    states = []
    for _ in range(3):
        answer = await anybody.get(path)
        assert answer.headers["ratelimit-policy"] == '"address";q=2;w=10'
        states.append(answer.headers["ratelimit"])
    assert states == ['"address";r=1;t=5', '"address";r=0;t=10', '"address";r=0;t=10']


async def test_to_a_token_it_says_what_is_left_to_that(
    anybody: httpx2.AsyncClient, hub: Hub
) -> None:
    token = {"Authorization": f"Bearer {await new_token(hub)}"}
    for path in ("/api/subscriptions", "/nothing"):
        answer = await anybody.get(path, headers=token)
        assert answer.headers["ratelimit-policy"] == '"token";q=2;w=10'
    assert answer.headers["ratelimit"] == '"token";r=0;t=10'
    answer = await anybody.get("/api/feeds", headers=ADMIN)
    assert "ratelimit" not in answer.headers


async def test_the_description_of_the_api_is_counted_too(
    anybody: httpx2.AsyncClient,
) -> None:
    assert await statuses(anybody, "/api/openapi.json") == [200, 200, 429]


async def test_a_token_is_counted_by_itself(anybody: httpx2.AsyncClient) -> None:
    tokens = []
    for account in ("alice", "bob"):
        body = {"account": account, "scopes": ["list"]}
        made = await anybody.post("/api/tokens", json=body, headers=ADMIN)
        tokens.append({"Authorization": f"Bearer {made.json()['token']}"})
    await statuses(anybody, "/nothing")  # its address has used up its own
    for headers in tokens:
        assert await statuses(anybody, "/api/subscriptions", headers) == [200, 200, 429]


async def new_token(hub: Hub) -> str:
    request = CreateToken(account="ada", scopes=frozenset({TokenScope.LIST}))
    return (await hub.services.tokens.create(request)).secret


DOORS = [
    ("GET", "/stream?topic=https://nobody.example/", 404),
    ("POST", "/hub", 400),
    ("GET", "/nothing", 404),
]


@pytest.mark.parametrize(("method", "path", "usual"), DOORS)
async def test_a_token_counts_for_itself_at_open_doors_too(
    anybody: httpx2.AsyncClient, hub: Hub, method: str, path: str, usual: int
) -> None:
    await statuses(anybody, "/nothing")  # its address has used up its own
    assert (await anybody.request(method, path)).status_code == 429
    for _ in range(2):
        headers = {"Authorization": f"Bearer {await new_token(hub)}"}
        found = [await anybody.request(method, path, headers=headers) for _ in range(3)]
        assert [each.status_code for each in found] == [usual, usual, 429]
        assert "token" in found[-1].json()["detail"]


async def test_a_token_in_the_url_counts_for_itself(
    anybody: httpx2.AsyncClient, hub: Hub
) -> None:
    await statuses(anybody, "/nothing")
    login = base64.b64encode(f"ada:{await new_token(hub)}".encode()).decode()
    path = f"/stream?topic=https://nobody.example/&authorization={login}"
    assert await statuses(anybody, path) == [404, 404, 429]


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer " + "0" * 32},
        {"Authorization": "Bearer"},
        {**ADMIN, "Origin": "https://evil.example"},
    ],
    ids=["unknown", "malformed", "sent by another site's page"],
)
async def test_a_token_that_is_not_believed_leaves_the_address_to_count(
    anybody: httpx2.AsyncClient, headers: dict[str, str]
) -> None:
    assert await statuses(anybody, "/nothing", headers) == [404, 404, 429]


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
async def test_what_machines_watch_is_not_counted(
    anybody: httpx2.AsyncClient, path: str
) -> None:
    assert await statuses(anybody, path) == [200, 200, 200]


async def test_the_administrator_is_not_counted(anybody: httpx2.AsyncClient) -> None:
    assert await statuses(anybody, "/api/feeds", ADMIN) == [200, 200, 200]
    assert await statuses(anybody, "/nothing", ADMIN) == [404, 404, 404]


async def test_guessing_tokens_is_slow(anybody: httpx2.AsyncClient) -> None:
    guess = {"Authorization": "Bearer " + "0" * 32}
    assert await statuses(anybody, "/api/feeds", guess) == [401, 401, 429]


async def test_refusals_are_counted(anybody: httpx2.AsyncClient, hub: Hub) -> None:
    await statuses(anybody, "/nothing")
    assert hub.metrics.limited["address"] == 1


@pytest.mark.parametrize(
    ("peer", "forwarded", "trusted", "client"),
    [
        ("192.0.2.1", (), (), "192.0.2.1"),
        ("192.0.2.1", ("198.51.100.1",), (), "192.0.2.1"),
        ("10.0.0.1", ("198.51.100.1",), ("10.0.0.0/8",), "198.51.100.1"),
        ("10.0.0.1", ("6.6.6.6, 198.51.100.1",), ("10.0.0.0/8",), "198.51.100.1"),
        ("10.0.0.1", ("6.6.6.6", "198.51.100.1"), ("10.0.0.0/8",), "198.51.100.1"),
        ("10.0.0.1", ("198.51.100.1, 10.0.0.2",), ("10.0.0.0/8",), "198.51.100.1"),
        ("10.0.0.1", (), ("10.0.0.0/8",), "10.0.0.1"),
        ("10.0.0.1", ("nonsense",), ("10.0.0.0/8",), "nonsense"),
        ("10.0.0.1", ("x" * 1000,), ("10.0.0.0/8",), "x" * 64),
        ("2001:db8::1:2", (), (), "2001:db8::/64"),
        ("::ffff:192.0.2.1", (), (), "192.0.2.1"),
        ("::ffff:10.0.0.1", ("198.51.100.7",), ("10.0.0.0/8",), "198.51.100.7"),
        ("", (), (), ""),
    ],
)
def test_a_client_is_who_trusted_proxies_say_asks(
    peer: str, forwarded: tuple[str, ...], trusted: tuple[str, ...], client: str
) -> None:
    networks = tuple(ipaddress.ip_network(each) for each in trusted)
    assert client_address(connection(peer, *forwarded), networks) == client


@pytest.mark.parametrize("header", [b"x-forwarded-for", b"forwarded"])
def test_a_proxy_that_nobody_trusts_is_warned_about_once(header: bytes) -> None:
    """All who come by it are one client then."""
    limits = RateLimits()
    behind = connection("10.0.0.1")
    behind.scope["headers"].append((header, b"for=203.0.113.9"))
    with capture_logs() as logs:
        assert limits.client(connection("10.0.0.2")) == "10.0.0.2"
        assert logs == []
        for _ in range(3):
            assert limits.client(behind) == "10.0.0.1"
    (told,) = logs
    assert (told["event"], told["peer"]) == ("proxy_not_trusted", "10.0.0.1")
    assert "FANFARE_TRUSTED_PROXIES" in told["hint"]


def test_where_proxies_are_named_nobody_elses_header_is_warned_about() -> None:
    trusted = (ipaddress.ip_network("10.0.0.0/8"),)
    limits = RateLimits(RequestLimits(trusted_proxies=trusted))
    with capture_logs() as logs:
        limits.client(connection("203.0.113.9", "198.51.100.1"))
        limits.client(connection("10.0.0.1", "198.51.100.1"))
    assert logs == []


def test_what_is_kept_of_clients_is_bounded() -> None:
    limits = RateLimits(
        RequestLimits(of_address=per_minute(12)), ManualClock(), capacity=2
    )
    for peer in ("192.0.2.1", "192.0.2.1", "192.0.2.2"):
        limits.check_address(connection(peer))
    with pytest.raises(Problem):
        limits.check_address(connection("192.0.2.1"))
    for peer in ("192.0.2.2", "192.0.2.3"):
        limits.check_address(connection(peer))
    limits.check_address(connection("192.0.2.1"))  # forgotten, so full again


def test_without_a_limit_nothing_is_counted() -> None:
    limits = RateLimits()
    for _ in range(1_000):
        limits.check_address(connection("192.0.2.1"))
        limits.check_token(1)
