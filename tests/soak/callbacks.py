"""Callbacks by the thousand in a process of their own, good ones and bad ones.

``python -m tests.soak.callbacks FILE COUNT`` answers POSTs with 204. In FILE, which the
process that watches maps into its memory, it notes how often each of COUNT callbacks at
``/ok/NUMBER`` was asked, how late news came whose titles say when they were published,
and whether numbered news came in disorder. Other callbacks misbehave: ``/hang/`` says
nothing, ``/drip/`` sends a byte of its head a second, ``/endless/`` a byte of its body.
"""

from __future__ import annotations

import asyncio
import mmap
import re
import struct
import sys
import time
from array import array
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import httptools
import uvloop

from scripts.benchmarks.apart import running_apart, serve_apart
from scripts.benchmarks.listeners import allow_files

PUBLISHED = re.compile(rb"~sent~([\d.]+)~sent~")
NUMBERED = re.compile(rb"~number~(\d+)~")
MOST_LATENCIES = 1_000_000
MOST_FILES = 65_536
_HEAD = struct.Struct("qqqqdd")
_TIMES = struct.Struct("I")
_LATENCY = struct.Struct("dd")  # how late, and when
_ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"
_DRIP = b"HTTP/1.1 200 OK\r\n" + b"X: x\r\n" * 100
_ENDLESS = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n"


def published_now() -> str:
    """Words for the title of an entry that is published now, with the time."""
    return f"~sent~{time.monotonic():.6f}~sent~"


def numbered(number: int) -> str:
    return f"~number~{number}~"


class Book:
    """What the callbacks have seen so far, shared through a mapped file."""

    def __init__(self, path: Path, callbacks: int) -> None:
        self._callbacks = callbacks
        self._latencies_at = _HEAD.size + _TIMES.size * callbacks
        size = self._latencies_at + _LATENCY.size * MOST_LATENCIES
        if path.stat().st_size < size:
            with path.open("r+b") as file:
                file.truncate(size)
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), size)
        self.asked = self.late = self.reached = self.disorders = 0
        self.first = self.last = 0.0

    def read(self) -> None:
        (self.asked, self.late, self.reached, self.disorders, self.first, self.last) = (
            _HEAD.unpack_from(self._shared)
        )

    def write(self) -> None:
        figures = self.asked, self.late, self.reached, self.disorders
        _HEAD.pack_into(self._shared, 0, *figures, self.first, self.last)

    def note(self, callback: int, body: bytes) -> None:
        """Note that a callback was asked. ``reached``: up to which number in order."""
        now = time.monotonic()
        at = _HEAD.size + _TIMES.size * callback
        (times,) = _TIMES.unpack_from(self._shared, at)
        _TIMES.pack_into(self._shared, at, times + 1)
        self.first = self.first or now
        self.asked, self.last = self.asked + 1, now
        if found := PUBLISHED.search(body):
            at = self._latencies_at + self.late % MOST_LATENCIES * _LATENCY.size
            _LATENCY.pack_into(self._shared, at, now - float(found[1]), now)
            self.late += 1
        if found := NUMBERED.search(body):
            self.disorders += int(found[1]) != self.reached + 1
            self.reached = int(found[1])
        self.write()

    def begin(self) -> None:
        """Forget which callbacks were asked, and when; only while none is asked."""
        self._shared[_HEAD.size : self._latencies_at] = bytes(
            _TIMES.size * self._callbacks
        )

    def times_asked(self) -> array[int]:
        """How often each callback was asked."""
        return array("I", self._shared[_HEAD.size : self._latencies_at])

    def latencies(self, since: float, until: float) -> list[float]:
        """Seconds from publication to arrival, for arrivals between two moments."""
        self.read()
        end = self._latencies_at + min(self.late, MOST_LATENCIES) * _LATENCY.size
        noted = _LATENCY.iter_unpack(self._shared[self._latencies_at : end])
        return sorted(late for late, at in noted if since <= at < until)


class Callback(asyncio.Protocol):
    """One connection that the hub has opened."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._url, self._body = b"", b""
        self._dripping: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._dripping is not None:
            self._dripping.cancel()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        _, kind, callback = self._url.split(b"/")
        body, self._url, self._body = self._body, b"", b""
        if kind == b"ok":
            self._book.note(int(callback), body)
            self._transport.write(_ANSWER)
        elif kind == b"drip":
            self._drip(_DRIP)
        elif kind == b"endless":
            self._transport.write(_ENDLESS)
            self._drip(b"x" * 1_000)

    def _drip(self, left: bytes) -> None:
        self._transport.write(left[:1])
        loop = asyncio.get_running_loop()
        self._dripping = loop.call_later(1.0, self._drip, left[1:])


class Callbacks:
    """The running process, as the process that watches sees it."""

    def __init__(self, port: int, book: Book) -> None:
        self.book = book
        self._port = port

    def url(self, kind: str, number: int) -> str:
        return f"http://127.0.0.1:{self._port}/{kind}/{number}"


@asynccontextmanager
async def running_callbacks(directory: Path, count: int) -> AsyncIterator[Callbacks]:
    path = directory / "callbacks"
    path.touch()
    book = Book(path, count)
    arguments = str(path), str(count)
    async with running_apart("tests.soak.callbacks", *arguments) as port:
        yield Callbacks(port, book)


if __name__ == "__main__":
    allow_files(MOST_FILES)
    _book = Book(Path(sys.argv[1]), int(sys.argv[2]))
    uvloop.run(serve_apart(lambda: Callback(_book), backlog=4_096))
