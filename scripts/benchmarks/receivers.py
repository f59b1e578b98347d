"""Callbacks of all manners in a process of their own, which tell how late news came.

``python -m scripts.benchmarks.receivers FILE`` answers POSTs with 204: those below
``/late/`` after 50 ms, those below ``/hang/`` never, all others at once. It counts in
FILE, which the measuring process maps into its memory, what was answered, and writes
there of each body that says when it was committed how many seconds ago that was.
"""

from __future__ import annotations

import asyncio
import mmap
import struct
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import httptools
import uvloop

from scripts.benchmarks.apart import running_apart, serve_apart
from scripts.benchmarks.listeners import allow_files
from scripts.benchmarks.measuring import until
from scripts.benchmarks.topics import SENT

LATE_SECONDS = 0.05
MOST_LATENCIES = 1_000_000
_HEAD = struct.Struct("qqd")  # answered, latencies, monotonic time of the last answer
_LATENCY = struct.Struct("d")
_SIZE = _HEAD.size + MOST_LATENCIES * _LATENCY.size
_SENT = SENT.encode()
_NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"


class Book:
    """What the receivers have seen so far, shared through a mapped file."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), _SIZE)
        self.answered, self.told, self.last = 0, 0, 0.0

    def read(self) -> None:
        self.answered, self.told, self.last = _HEAD.unpack_from(self._shared)

    def write(self) -> None:
        _HEAD.pack_into(self._shared, 0, self.answered, self.told, self.last)

    def note(self, latency: float) -> None:
        at = _HEAD.size + self.told % MOST_LATENCIES * _LATENCY.size
        _LATENCY.pack_into(self._shared, at, latency)
        self.told += 1

    def latencies(self, first: int) -> list[float]:
        """Seconds from commit to arrival, from so many on."""
        self.read()
        end = _HEAD.size + self.told * _LATENCY.size
        start = _HEAD.size + first * _LATENCY.size
        return [each for (each,) in _LATENCY.iter_unpack(self._shared[start:end])]


class Receiving(asyncio.Protocol):
    """One connection of the hub's."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._url, self._body = b"", b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        url, body = self._url, self._body
        self._url, self._body = b"", b""
        if url.startswith(b"/hang/"):
            return
        said = body.split(_SENT, 2)
        if len(said) == 3:
            self._book.note(time.monotonic() - float(said[1]))
        if url.startswith(b"/late/"):
            asyncio.get_running_loop().call_later(LATE_SECONDS, self._answer)
        else:
            self._answer()

    def _answer(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(_NO_CONTENT)
            self._book.answered += 1
            self._book.last = time.monotonic()
            self._book.write()


class Receivers:
    """The running process, as the measuring one sees it."""

    def __init__(self, port: int, book: Book) -> None:
        self.port = port
        self._book = book

    @property
    def answered(self) -> int:
        self._book.read()
        return self._book.answered

    @property
    def told(self) -> int:
        """How many latencies are known."""
        self._book.read()
        return self._book.told

    @property
    def last(self) -> float:
        """When the last was answered, in this machine's monotonic time."""
        self._book.read()
        return self._book.last

    def latencies(self, first: int) -> list[float]:
        return self._book.latencies(first)

    async def wait_for(self, answered: int, pause: float = 0.005) -> None:
        async def are_answered() -> bool:
            return self.answered >= answered

        await until(are_answered, pause=pause)


@asynccontextmanager
async def running_receivers(directory: Path) -> AsyncIterator[Receivers]:
    path = directory / "book"
    path.write_bytes(bytes(_SIZE))
    async with running_apart("scripts.benchmarks.receivers", str(path)) as port:
        yield Receivers(port, Book(path))


if __name__ == "__main__":
    allow_files(16_384)
    _book = Book(Path(sys.argv[1]))
    uvloop.run(serve_apart(lambda: Receiving(_book), backlog=2_048))
