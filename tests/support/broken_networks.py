"""A server that never accepts, and a TCP proxy that can cut all its connections."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress


@contextmanager
def black_hole() -> Iterator[str]:
    """The origin of a server that never answers whoever connects to it."""
    with ExitStack() as stack:
        listener = stack.enter_context(
            socket.create_server(("127.0.0.1", 0), backlog=0)
        )
        for _ in range(4):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


class CuttingProxy:
    def __init__(self, target: int) -> None:
        self.port = 0
        self.connections = 0  # so far
        self._target = target
        self._open: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    async def accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.connections += 1
        far_reader, far_writer = await asyncio.open_connection(
            "127.0.0.1", self._target
        )
        ends = {writer, far_writer}
        self._open |= ends
        with suppress(OSError):
            await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
        for each in ends:
            each.transport.abort()
        self._open -= ends


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(2**16):
        writer.write(data)
        await writer.drain()
    raise ConnectionResetError


@asynccontextmanager
async def cutting_proxy(target: int) -> AsyncIterator[CuttingProxy]:
    proxy = CuttingProxy(target)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut()
