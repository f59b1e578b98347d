"""Who connects and says nothing, or not enough, or without end, is not waited for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.live_hub import LiveHub, live_hub


@pytest.fixture
async def patient_hub(tmp_path: Path) -> AsyncIterator[LiveHub]:
    async with live_hub(tmp_path) as hub:
        yield hub


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


async def test_a_head_that_is_too_large_is_refused(patient_hub: LiveHub) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", patient_hub.port)
    writer.write(b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 60_000)
    await writer.drain()
    writer.write(b"x" * 10_000)
    async with asyncio.timeout(20):
        answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert b"content-length: %d\r\n" % len(answer.partition(b"\r\n\r\n")[2]) in answer


async def test_a_head_without_end_is_not_read_on(patient_hub: LiveHub) -> None:
    _reader, writer = await asyncio.open_connection("127.0.0.1", patient_hub.port)
    writer.write(b"GET /healthz HTTP/1.1\r\nX: ")

    async def go_on() -> None:
        while True:
            writer.write(b"x" * 10_000)
            await writer.drain()
            await asyncio.sleep(0)

    async with asyncio.timeout(20):
        with pytest.raises(ConnectionError):
            await go_on()
    writer.close()


async def test_a_head_is_counted_and_a_body_is_not(patient_hub: LiveHub) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", patient_hub.port)
    for _ in range(3):
        body = b"hub.mode=" + b"x" * 200_000
        writer.write(
            b"POST /hub HTTP/1.1\r\nHost: hub\r\nX: %s\r\n"
            b"Content-Type: application/x-www-form-urlencoded\r\n"
            b"Content-Length: %d\r\n\r\n" % (b"y" * 30_000, len(body))
        )
        for start in range(0, len(body), 50_000):
            writer.write(body[start : start + 50_000])
            await writer.drain()
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ")
        length = re.search(rb"content-length: (\d+)", head)
        assert length is not None
        assert (await reader.readexactly(int(length[1]))).startswith(b"hub.mode:")
    writer.close()
