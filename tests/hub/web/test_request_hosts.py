"""Which host a request is for: RFC 9112 3.2."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.live_hub import LiveHub, live_hub

UPGRADE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveHub]:
    async with live_hub(tmp_path_factory.mktemp("hub")) as hub:
        yield hub


async def answers(hub: LiveHub, requests: str) -> str:
    """All that comes until the hub closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
    writer.write(requests.encode("latin-1"))
    async with asyncio.timeout(60):
        found = await reader.read()
    writer.close()
    return found.decode("latin-1")


@pytest.mark.parametrize(
    "head",
    [
        "GET /healthz HTTP/1.1\r\n",
        "GET /healthz HTTP/1.1\r\nHost: hub\r\nHost: hub\r\n",
        "GET /healthz HTTP/1.1\r\nHost: hub\r\nhost: evil.example\r\n",
        "GET /healthz HTTP/1.0\r\nHost: hub\r\nHost: hub\r\n",
        "GET /healthz HTTP/1.1\r\nHost: hub evil.example\r\n",
        "GET /healthz HTTP/1.1\r\nHost: hub/path\r\n",
        "GET /healthz HTTP/1.1\r\nHost: ann@hub\r\n",
        "GET /healthz HTTP/1.1\r\nHost: hub:http\r\n",
        "GET /healthz HTTP/1.1\r\nHost: h\u00fcb\r\n",
        f"GET /stream HTTP/1.1\r\n{UPGRADE}",
        f"GET /stream HTTP/1.1\r\nHost: hub\r\nHost: hub\r\n{UPGRADE}",
    ],
)
async def test_a_request_without_one_host_is_refused(hub: LiveHub, head: str) -> None:
    answer = await answers(hub, head + "\r\n")
    assert answer.startswith("HTTP/1.1 400 ")
    assert answer.endswith(
        "\r\n\r\nexpected one Host header, with a host and perhaps a port"
    )
    assert answer.count("HTTP/1.1") == 1


@pytest.mark.parametrize(
    "head",
    [
        "GET /healthz HTTP/1.0\r\n",
        "GET /healthz HTTP/1.0\r\nHost: hub\r\n",
        "GET /healthz HTTP/1.1\r\nHost: [::1]:8080\r\nConnection: close\r\n",
        "GET /healthz HTTP/1.1\r\nHost: hub_1.example:\r\nConnection: close\r\n",
        "GET /healthz HTTP/1.1\r\nHost:\r\nConnection: close\r\n",
        "GET /healthz HTTP/1.1\r\nHost: hub \t\r\nConnection: close\r\n",
    ],
)
async def test_one_host_will_do_and_none_in_the_old_protocol(
    hub: LiveHub, head: str
) -> None:
    assert (await answers(hub, head + "\r\n")).startswith("HTTP/1.1 200 ")


async def test_what_was_answered_before_stays_whole(hub: LiveHub) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: hub\r\n\r\n")
    await reader.readuntil(b'{"alive":true}')
    writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
    assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
    writer.close()


@pytest.mark.parametrize(
    "second", ["GET /healthz HTTP/1.1\r\n\r\n", "no request\r\n\r\n"]
)
async def test_a_refusal_does_not_get_into_an_answer_under_way(
    hub: LiveHub, second: str
) -> None:
    first = "GET /healthz HTTP/1.1\r\nHost: hub\r\n\r\n"
    try:
        assert "400" not in await answers(hub, first + second)
    except ConnectionError:
        return


async def test_a_body_that_cannot_be_read_is_told(hub: LiveHub) -> None:
    head = "POST /hub HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = await answers(hub, f"{head}no chunk\r\n")
    assert answer.startswith("HTTP/1.1 400 ")
    assert answer.count("HTTP/1.1") == 1
