"""A websocket client and a server-sent events client, as anybody would write them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from urllib.parse import urlencode, urlsplit

from websockets.asyncio.client import connect

from hub.demo.arrivals import Arrivals, Way
from hub.demo.outside import entry_ids
from hub.runtime.clock import Clock
from protocols.live.decoding import read_server_message
from protocols.live.messages import NotificationMessage

LARGEST_CHUNK = 16 * 1024 * 1024


class Listeners:
    """They listen from a cursor on, so that nothing is missed before they begin."""

    def __init__(
        self,
        url: str,
        topics: Iterable[str],
        cursor: str,
        arrivals: Arrivals,
        clock: Clock,
    ) -> None:
        self._parts = urlsplit(url)
        self._query = urlencode(
            [*(("topic", topic) for topic in topics), ("cursor", cursor)]
        )
        self._arrivals = arrivals
        self._clock = clock

    async def listen_by_websocket(self) -> None:
        async with connect(f"ws://{self._parts.netloc}/stream?{self._query}") as socket:
            async for message in socket:
                self._take(Way.WEBSOCKET, message)

    async def listen_by_events(self) -> None:
        reader, writer = await asyncio.open_connection(
            self._parts.hostname, self._parts.port, limit=LARGEST_CHUNK
        )
        try:
            writer.write(
                f"GET /stream?{self._query} HTTP/1.1\r\nHost: {self._parts.netloc}\r\n"
                "Accept: text/event-stream\r\n\r\n".encode()
            )
            async for line in _lines(reader):
                if line.startswith(b"data: "):
                    self._take(Way.SSE, line.removeprefix(b"data: "))
        finally:
            writer.close()

    def _take(self, way: Way, message: str | bytes) -> None:
        read = read_server_message(message)
        if isinstance(read, NotificationMessage):
            now = self._clock.monotonic()
            for entry_id in entry_ids(read.body):
                self._arrivals.arrive(way, entry_id, now)


async def _lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The lines of a chunked answer (RFC 9112 7.1), until it ends."""
    await reader.readuntil(b"\r\n\r\n")
    rest = b""
    while size := int(await reader.readline(), 16):
        chunk = await reader.readexactly(size + len(b"\r\n"))
        *lines, rest = (rest + chunk[:size]).split(b"\n")
        for line in lines:
            yield line
