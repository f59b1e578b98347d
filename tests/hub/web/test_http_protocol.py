"""Who connects and says nothing, or not enough, is not waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.live_hub import LiveHub, live_hub


@pytest.fixture
async def hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LiveHub]:
    monkeypatch.setattr("hub.web.http_protocol.HEAD_SECONDS", 0.2)
    async with live_hub(tmp_path) as hub:
        yield hub


@pytest.mark.parametrize(
    "begun", ["", "GET /stream HTTP/1.1\r\n", "GET /stream HTTP/1.1\r\nUpgrade: websoc"]
)
async def test_a_head_that_does_not_come_to_its_end_is_cut_off(
    hub: LiveHub, begun: str
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
    writer.write(begun.encode())
    async with asyncio.timeout(60):
        with suppress(ConnectionError):
            assert await reader.read() == b""
    writer.close()


async def test_a_whole_head_is_given_time(hub: LiveHub) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
    for _ in range(2):
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: hub\r\n\r\n")
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(len(b'{"alive":true}'))
    async with hub.connect() as client:
        await asyncio.sleep(0.4)
        await client.ping()
    writer.close()
