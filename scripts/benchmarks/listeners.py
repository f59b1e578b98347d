"""Clients of the live stream in a process of their own: they connect, and count.

A process per bench, since what it takes to receive is not the hub's. It is told on
stdin to open connections, and counts in a mapped file what has come.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import cast

import uvloop

from scripts.benchmarks.measuring import until
from scripts.benchmarks.peers import Counts

MARK = b"~end~"
"""Every message has it once, near its end."""

_PING = b"\x89\x04"
"""No JSON has these two bytes, nor has the head of a frame of 1 kB."""
_PONG = b"\x8a\x84\0\0\0\0"

_HEADS = {
    "websocket": "GET {target} HTTP/1.1\r\nHost: hub\r\nUpgrade: websocket\r\n"
    "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
    "sse": "GET {target} HTTP/1.1\r\nHost: hub\r\n{headers}"
    "Accept: text/event-stream\r\n\r\n",
    "raw": "",
}


class ListenerConnection(asyncio.Protocol):
    """One connection."""

    def __init__(self, counts: Counts, head: bytes) -> None:
        self._counts = counts
        self._head = head
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._counts.connections += 1
        self._transport = cast(asyncio.Transport, transport)
        if self._head:
            self._transport.write(self._head)

    def data_received(self, data: bytes) -> None:
        ping = data.find(_PING)
        if ping >= 0:
            self._transport.write(_PONG + data[ping + 2 : ping + 6])
        data = self._rest + data
        self._counts.requests += data.count(MARK)
        self._rest = data[1 - len(MARK) :] if not data.endswith(MARK) else b""


class Listeners:
    """The running process, as the measuring one sees it."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    @property
    def messages(self) -> int:
        self._counts.read()
        return self._counts.requests

    async def wait_for(self, messages: int) -> None:
        async def have_come() -> bool:
            return self.messages >= messages

        await until(have_come, pause=0.002)


@asynccontextmanager
async def listening(
    directory: Path,
    kind: str,
    port: int,
    target: str,
    connections: int,
    source: str = "127.0.0.1",
    headers: str = "",
) -> AsyncIterator[Listeners]:
    """So many open connections of a kind: websocket, sse, or raw.

    One ``source`` has ports for some 28,000. ``target``: several, with blanks between
    them, are taken in turn. ``headers``: more lines of the request for an event stream.
    """
    path = directory / f"counts-{kind}-{source}"
    path.write_bytes(bytes(24))
    process = await create_subprocess_exec(
        *(sys.executable, "-m", "scripts.benchmarks.listeners"),
        *(str(path), kind, str(port), target, str(connections), source, headers),
        stdout=PIPE,
    )
    try:
        await cast(asyncio.StreamReader, process.stdout).readline()
        yield Listeners(Counts(path))
    finally:
        process.terminate()
        await process.wait()


async def _listen(
    counts: Counts,
    kind: str,
    port: int,
    target: str,
    connections: int,
    source: str,
    headers: str,
) -> None:
    heads = [
        _HEADS[kind].format(target=each, headers=headers).encode()
        for each in target.split(" ")
    ]
    loop = asyncio.get_running_loop()
    for number in range(connections):
        await loop.create_connection(
            partial(ListenerConnection, counts, heads[number % len(heads)]),
            "127.0.0.1",
            port,
            local_addr=(source, 0),
        )
    print("connected", flush=True)
    while True:
        counts.write()
        await asyncio.sleep(0.002)


def allow_files(count: int) -> None:
    """Open connections are open files, of which few are allowed by default."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))


if __name__ == "__main__":
    _path, _kind, _port, _target, _connections, _source, _headers = sys.argv[1:]
    _count = int(_connections)
    allow_files(4_096 + _count)
    uvloop.run(
        _listen(
            *(Counts(Path(_path)), _kind, int(_port), _target, _count, _source),
            _headers,
        )
    )
