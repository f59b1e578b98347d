"""A websocket client that sends whatever frames a test wants, right or wrong."""

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
"""Masking with zeros changes nothing, and is masking all the same."""


@dataclass(frozen=True, slots=True)
class RawFrame:
    opcode: int
    payload: bytes
    is_final: bool = True
    rsv: int = 0

    @property
    def code(self) -> int | None:
        """Why a connection is closed."""
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
    """A client's frame. ``length``: what it claims to have, if that is not true."""
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
        """``headers``: of the handshake's answer, names in lower case."""
        self.headers = headers or {}
        self._reader = reader
        self._writer = writer

    def send(self, *frames: bytes) -> None:
        for each in frames:
            self._writer.write(each)

    async def drain(self) -> None:
        await self._writer.drain()

    async def receive(self) -> RawFrame:
        """The next frame. Raises `EOFError` at the end."""
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
        """The next one of that type. Pings are answered."""
        while True:
            found = await self.receive()
            if found.opcode == PING:
                self.send(frame(PONG, found.payload))
                continue
            assert found.opcode == TEXT, found
            if found.message["type"] == kind:
                return found.message

    async def farewell(self, *, is_polite: bool = False) -> RawFrame:
        """The close frame, whatever came before; then the end of the connection.

        It is answered by who is polite.
        """
        while (found := await self.receive()).opcode != CLOSE:
            pass
        if is_polite:
            self.send(frame(CLOSE, found.payload))
        # Who still sends when the hub's patience ends is answered by a reset, which may
        # overtake the end; the reason has come by then.
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
    """What a test waits for comes within so many seconds, or it fails."""
    client = await open_websocket(port, target, extra)
    try:
        async with asyncio.timeout(seconds):
            yield client
    finally:
        client.abort()
