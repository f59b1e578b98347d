"""The other side of a benchmark: an HTTP server in a process of its own.

``python -m scripts.benchmarks.peers FILE ADDRESS...`` listens on one port of all the
addresses. It answers as fast as Python can: 204 to a POST; 304 to a GET that is
conditional, a small feed with an ETag to one that is not, and the file NAME beside FILE
to one of ``/file/NAME``. Connections of a GET are
closed, since between two polls of a feed they would be. It counts in FILE, which the
measuring process maps into its memory, so that watching costs nothing.
"""

from __future__ import annotations

import asyncio
import mmap
import socket
import struct
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import httptools
import uvloop

from scripts.benchmarks.apart import running_apart
from scripts.benchmarks.measuring import until

ETAG = '"one"'
DOCUMENT = b"""<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:bench</id><title>Bench</title>
<updated>2026-01-01T00:00:00Z</updated><entry><id>urn:bench:1</id><title>One</title>
<link href="https://publisher.example/1"/><updated>2026-01-01T00:00:00Z</updated>
</entry></feed>
"""
_COUNTS = struct.Struct("qqd")  # requests, connections, monotonic time of the last

_NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"
_NOT_MODIFIED = (
    f"HTTP/1.1 304 Not Modified\r\nETag: {ETAG}\r\nConnection: close\r\n\r\n"
).encode()
_FEED = (
    "HTTP/1.1 200 OK\r\nContent-Type: application/atom+xml\r\n"
    f"ETag: {ETAG}\r\nConnection: close\r\nContent-Length: {len(DOCUMENT)}\r\n\r\n"
).encode() + DOCUMENT
_FILE = b"/file/"
_FILE_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\n"
    b"Connection: close\r\nContent-Length: %d\r\n\r\n"
)


class Counts:
    """What a peer has seen so far, shared through a mapped file."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), _COUNTS.size)
        self.requests, self.connections, self.last = 0, 0, 0.0

    def read(self) -> None:
        self.requests, self.connections, self.last = _COUNTS.unpack(self._shared)

    def write(self) -> None:
        self._shared[:] = _COUNTS.pack(self.requests, self.connections, self.last)


class Answering(asyncio.Protocol):
    """One connection of the peer."""

    def __init__(self, counts: Counts, files: Path) -> None:
        self._counts = counts
        self._files = files
        self._file: Path | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._is_conditional = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._counts.connections += 1

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        is_file = url.startswith(_FILE)
        self._file = self._files / url.removeprefix(_FILE).decode() if is_file else None

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"if-none-match":
            self._is_conditional = True

    def on_message_complete(self) -> None:
        if self._parser.get_method() == b"POST":
            self._transport.write(_NO_CONTENT)
        elif self._file:
            body = self._file.read_bytes()
            self._transport.write(_FILE_HEAD % len(body) + body)
            self._transport.close()
        else:
            self._transport.write(_NOT_MODIFIED if self._is_conditional else _FEED)
            self._transport.close()
        self._is_conditional = False
        self._counts.requests += 1
        self._counts.last = time.monotonic()
        self._counts.write()


class Peer:
    """A running peer, as the measuring process sees it."""

    def __init__(self, port: int, counts: Counts) -> None:
        self.port = port
        self._counts = counts

    @property
    def requests(self) -> int:
        self._counts.read()
        return self._counts.requests

    @property
    def connections(self) -> int:
        self._counts.read()
        return self._counts.connections

    @property
    def last(self) -> float:
        """When the last request was answered, in this machine's monotonic time."""
        self._counts.read()
        return self._counts.last

    async def wait_for(self, requests: int) -> None:
        """Until so many requests in all were answered."""

        async def are_answered() -> bool:
            return self.requests >= requests

        await until(are_answered, pause=0.005)


@asynccontextmanager
async def running_peer(
    directory: Path, addresses: Sequence[str]
) -> AsyncIterator[Peer]:
    path = directory / "counts"
    path.write_bytes(bytes(_COUNTS.size))
    command = "scripts.benchmarks.peers", str(path), *addresses
    async with running_apart(*command) as port:
        yield Peer(port, Counts(path))


def loopback_addresses(count: int) -> list[str]:
    """Different hosts that need no network: 127.0.1.1 and on."""
    return [f"127.0.{1 + number // 250}.{1 + number % 250}" for number in range(count)]


async def _serve(path: Path, addresses: Sequence[str]) -> None:
    counts = Counts(path)
    loop = asyncio.get_running_loop()
    port = 0
    for address in addresses:
        listener = socket.create_server((address, port), backlog=512)
        port = listener.getsockname()[1]
        await loop.create_server(lambda: Answering(counts, path.parent), sock=listener)
    print(port, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(_serve(Path(sys.argv[1]), sys.argv[2:]))
