"""A websocket client that sends any frames that a test wants, right or wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import orjson

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
DEFLATE = "Sec-WebSocket-Extensions: permessage-deflate\r\n"
_KEY = bytes(4)
"""Masking with zeros changes nothing, but it is masking all the same."""


@dataclass(frozen=True, slots=True)
class RawFrame:
    opcode: int
    payload: bytes
    is_final: bool = True
    rsv: int = 0

    @property
    def code(self) -> int | None:
        """The code of a close frame; None without one."""
        return int.from_bytes(self.payload[:2]) if self.payload else None

    @property
    def message(self) -> dict[str, Any]:
        found: dict[str, Any] = orjson.loads(self.payload)
        return found


def frame(
    opcode: int,
    payload: bytes = b"",
    *,
    is_final: bool = True,
    rsv: int = 0,
    is_masked: bool = True,
    length: int | None = None,
) -> bytes:
    """A client's frame. ``length``: the one it claims, if that is not true."""
    size = len(payload) if length is None else length
    head = bytes([is_final << 7 | rsv << 4 | opcode])
    mask = is_masked << 7
    if size < 126:
        head += bytes([mask | size])
    elif size < 2**16:
        head += bytes([mask | 126]) + size.to_bytes(2)
    else:
        head += bytes([mask | 127]) + size.to_bytes(8)
    return head + (_KEY if is_masked else b"") + payload


class RawWebSocket:
    """One connection after its handshake."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        headers: dict[str, str] | None = None,
    ) -> None:
        """Take ``headers`` of the handshake's answer, with names in lower case."""
        self.headers = headers or {}
        self._reader = reader
        self._writer = writer

    def send(self, *frames: bytes) -> None:
        for each in frames:
            self._writer.write(each)

    async def drain(self) -> None:
        await self._writer.drain()

    async def receive(self) -> RawFrame:
        """Return the next frame. Raises `EOFError` at the end."""
        first, second = await self._reader.readexactly(2)
        assert not second & 0x80, "a hub's frames are not masked"
        size = second & 0x7F
        if size > 125:
            size = int.from_bytes(
                await self._reader.readexactly(2 if size == 126 else 8)
            )
        payload = await self._reader.readexactly(size)
        return RawFrame(first & 0x0F, payload, bool(first & 0x80), first >> 4 & 0x7)

    async def message(self, kind: str) -> dict[str, Any]:
        """Return the next message of that type; answer pings before it."""
        while True:
            found = await self.receive()
            if found.opcode == PING:
                self.send(frame(PONG, found.payload))
                continue
            assert found.opcode == TEXT, found
            if found.message["type"] == kind:
                return found.message

    async def farewell(self, *, is_polite: bool = False) -> RawFrame:
        """Return the close frame, whatever came before; then the connection must end.

        A client that ``is_polite`` answers it.
        """
        while (found := await self.receive()).opcode != CLOSE:
            pass
        if is_polite:
            self.send(frame(CLOSE, found.payload))
        # A client that still sends when the hub stops waiting gets a reset, which may
        # overtake the end; the close frame has come by then.
        with suppress(ConnectionResetError):
            assert await self._reader.read() == b""
        return found

    def abort(self) -> None:
        self._writer.transport.abort()


async def open_websocket(port: int, target: str, extra: str = "") -> RawWebSocket:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    writer.write(
        f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n{extra}\r\n".encode()
    )
    answer = await reader.readuntil(b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 101 "), answer
    lines = (line.split(": ", 1) for line in answer.decode().split("\r\n")[1:-2])
    return RawWebSocket(reader, writer, {name.lower(): it for name, it in lines})


@asynccontextmanager
async def raw_websocket(
    port: int, target: str = "/stream", extra: str = "", seconds: float = 120.0
) -> AsyncIterator[RawWebSocket]:
    """A connection for the block, which may take so many seconds."""
    client = await open_websocket(port, target, extra)
    try:
        async with asyncio.timeout(seconds):
            yield client
    finally:
        client.abort()
