"""Each client of Superfeedr gets the answer it needs to a request such as it sends.

Rows go over a plain socket, byte for byte as they are written in `requests`.
"""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import AsyncIterator
from http.client import HTTPResponse

import pytest
import pytest_asyncio

from tests.conformance.superfeedr.requests import (
    REQUESTS,
    Addresses,
    Replay,
    Reply,
)
from tests.conformance.superfeedr.retrievals import RETRIEVALS
from tests.support.websub import WebSubScene, websub_scene

pytestmark = pytest.mark.asyncio(loop_scope="module")
ALL = REQUESTS + RETRIEVALS
BY_NAME = {each.name: each for each in ALL}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[WebSubScene]:
    async with websub_scene(tmp_path_factory.mktemp("hub")) as scene:
        yield scene


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def token(scene: WebSubScene) -> str:
    scopes = ("subscribe", "unsubscribe", "list", "retrieve")
    return await scene.api.create_token("demo", *scopes)


@pytest.fixture
def addresses(scene: WebSubScene, token: str) -> Addresses:
    return Addresses(
        topic=scene.topic().url,
        callback=scene.callback("?id=1").url,
        host=f"127.0.0.1:{scene.hub.port}",
        basic=base64.b64encode(f"demo:{token}".encode()).decode(),
    )


def on_the_wire(replay: Replay, addresses: Addresses) -> bytes:
    body = addresses.fill(replay.body).encode()
    head = addresses.fill(replay.head).replace("\n", "\r\n")
    length = f"\r\nContent-Length: {len(body)}" if body else ""
    return f"{head}\r\nHost: {addresses.host}{length}\r\n\r\n".encode() + body


def exchange(port: int, sent: bytes) -> Reply:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(sent)
        method = sent.split(b" ", 1)[0].decode()
        answer = HTTPResponse(connection, method=method)
        answer.begin()
        body = answer.read()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return Reply(answer.status, headers.get("content-type", ""), headers, body)


@pytest.mark.parametrize("replay", ALL, ids=lambda each: each.name)
async def test_the_client_gets_what_it_needs(
    scene: WebSubScene, addresses: Addresses, replay: Replay
) -> None:
    for name in replay.before:
        await asyncio.to_thread(
            exchange, scene.hub.port, on_the_wire(BY_NAME[name], addresses)
        )
    reply = await asyncio.to_thread(
        exchange, scene.hub.port, on_the_wire(replay, addresses)
    )
    assert reply.status == replay.status, reply.body
    if replay.content_type:
        assert reply.content_type == replay.content_type
    if reply.status == 204:
        assert reply.body == b""
    assert replay.is_right(reply), reply.body
