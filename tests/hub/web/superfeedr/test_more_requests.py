"""Another request behind one whose answer is long in coming holds no place."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from hub.services.token_authentication import CreateToken
from storage.records import TokenScope
from tests.support.live_hub import LiveHub, live_hub
from tests.support.waiting import eventually

NEWS = "https://news.example/feed"
OTHER = "https://other.example/feed"
TOKEN = "0" * 32
LOGIN = base64.b64encode(f"me:{TOKEN}".encode()).decode()
RETRIEVE = f"/?hub.mode=retrieve&hub.topic={NEWS}&authorization={LOGIN}"
ANOTHER = "GET /healthz HTTP/1.1\r\nHost: hub\r\n\r\n"
LONG = [
    (f"{RETRIEVE}&wait=poll", "poll"),
    (f"{RETRIEVE}&wait=stream", "stream"),
    (f"/stream?topic={NEWS}", "sse"),
]


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveHub]:
    async with live_hub(tmp_path_factory.mktemp("hub")) as hub:
        await hub.add_feed(NEWS)
        rights = frozenset({TokenScope.RETRIEVE})
        token = CreateToken(account="me", scopes=rights, value=TOKEN)
        await hub.hub.services.tokens.create(token)
        yield hub


def request(target: str) -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: hub\r\n\r\n".encode()


async def cut_off(reader: asyncio.StreamReader) -> None:
    async with asyncio.timeout(60):
        try:
            await reader.read()
        except ConnectionError:
            return


@pytest.mark.parametrize(("target", "transport"), LONG)
async def test_a_request_behind_it_ends_it(
    hub: LiveHub, target: str, transport: str
) -> None:
    connections = hub.hub.metrics.connections
    reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
    writer.write(request(target))
    await eventually(lambda: connections[transport] == 1)
    writer.write(ANOTHER.encode())
    await cut_off(reader)
    await eventually(lambda: connections[transport] == 0)
    writer.close()


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize(("target", "transport"), LONG)
async def test_requests_that_come_with_it_end_it(
    hub: LiveHub, target: str, transport: str, times: int
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
    writer.write(request(target) + ANOTHER.encode() * times)
    await cut_off(reader)
    await eventually(lambda: hub.hub.metrics.connections[transport] == 0)
    writer.close()


async def test_after_a_poll_that_was_answered_the_connection_is_of_use(
    hub: LiveHub,
) -> None:
    await hub.add_feed(OTHER)
    target = RETRIEVE.replace(NEWS, OTHER)
    reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
    writer.write(request(f"{target}&wait=poll&format=json"))
    await eventually(lambda: hub.hub.metrics.connections["poll"] == 1)
    await hub.publish(OTHER, "one")
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
    assert b'"one"' in await reader.readexactly(length)
    writer.write(ANOTHER.encode() * 2)
    for _ in range(2):
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(len(b'{"alive":true}'))
    writer.close()
