"""Subscribers in a process of their own: they ask the hub, and confirm its questions.

It is told on stdin where to ask, and for what; it counts in a mapped file the
questions it has answered. What asking and answering costs is not the hub's.
"""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast
from urllib.parse import parse_qs, urlencode, urlsplit

import httptools
import uvloop

from scripts.benchmarks.measuring import until
from scripts.benchmarks.peers import Counts

CONNECTIONS = 64
_SIZE = 24


class Confirming(asyncio.Protocol):
    """One connection of the hub's: every question gets its challenge back."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._url = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._counts.connections += 1

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_message_complete(self) -> None:
        query = parse_qs(urlsplit(self._url.decode()).query)
        challenge = query["hub.challenge"][0].encode()
        self._url = b""
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(challenge)}\r\n\r\n"
        self._transport.write(head.encode() + challenge)
        self._counts.requests += 1
        self._counts.last = time.monotonic()
        self._counts.write()


class Asking(asyncio.Protocol):
    """One connection to the hub: a request after the other until none is left."""

    def __init__(self, requests: Iterator[bytes], done: asyncio.Future[None]) -> None:
        self._requests = requests
        self._done = done
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() != 202:
            raise RuntimeError(f"the hub answered {self._parser.get_status_code()}")
        self._parser = httptools.HttpResponseParser(self)
        self._ask()

    def _ask(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
            self._done.set_result(None)
        else:
            self._transport.write(request)


class Subscribers:
    """The running process, as the measuring one sees it."""

    def __init__(self, process: Process, port: int, counts: Counts) -> None:
        self._process = process
        self._counts = counts
        self.port = port

    @property
    def confirmed(self) -> int:
        self._counts.read()
        return self._counts.requests

    @property
    def last(self) -> float:
        """When the last question was answered, in this machine's monotonic time."""
        self._counts.read()
        return self._counts.last

    def ask(self, hub_port: int, topic: str, path: str, count: int) -> None:
        """Subscribe so many callbacks under a path; returns at once."""
        stdin = cast(asyncio.StreamWriter, self._process.stdin)
        stdin.write(f"{hub_port} {topic} {path} {count}\n".encode())

    async def wait_for(self, confirmed: int) -> None:
        async def are_confirmed() -> bool:
            return self.confirmed >= confirmed

        await until(are_confirmed, pause=0.05)  # `last` is when they were


@asynccontextmanager
async def running_subscribers(directory: Path) -> AsyncIterator[Subscribers]:
    path = directory / "counts-subscribers"
    path.write_bytes(bytes(_SIZE))
    process = await create_subprocess_exec(
        *(sys.executable, "-m", "scripts.benchmarks.subscribers", str(path)),
        stdin=PIPE,
        stdout=PIPE,
    )
    output = cast(asyncio.StreamReader, process.stdout)
    try:
        port = int(await output.readline())
        yield Subscribers(process, port, Counts(path))
    finally:
        process.terminate()
        await process.wait()


def _requests(port: int, topic: str, path: str, count: int) -> Iterator[bytes]:
    for number in range(count):
        form = urlencode(
            {
                "hub.mode": "subscribe",
                "hub.topic": topic,
                "hub.callback": f"http://127.0.0.1:{port}{path}/{number}",
                "hub.secret": f"the secret of {number}",
            }
        ).encode()
        head = (
            "POST /hub HTTP/1.1\r\nHost: hub\r\n"
            "Content-Type: application/x-www-form-urlencoded\r\n"
            f"Content-Length: {len(form)}\r\n\r\n"
        )
        yield head.encode() + form


async def _subscribe(port: int, order: str) -> None:
    hub_port, topic, path, count = order.split()
    requests = _requests(port, topic, path, int(count))
    loop = asyncio.get_running_loop()
    dones: list[asyncio.Future[None]] = []
    for _ in range(CONNECTIONS):
        done = loop.create_future()
        await loop.create_connection(
            lambda done=done: Asking(requests, done),  # type: ignore[misc]
            *("127.0.0.1", int(hub_port)),
        )
        dones.append(done)
    await asyncio.gather(*dones)


async def _serve(counts: Counts) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Confirming(counts), "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    print(port, flush=True)
    orders = asyncio.StreamReader()
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(orders), sys.stdin
    )
    async for order in orders:
        await _subscribe(port, order.decode())


if __name__ == "__main__":
    uvloop.run(_serve(Counts(Path(sys.argv[1]))))
