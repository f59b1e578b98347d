"""A hand-written HTTP origin on loopback whose answers a test scripts per path.

It misbehaves on demand: it is late, drips, never ends, lies about its length, resets
the connection, or sends bytes that are no HTTP at all. Every request is kept with the
exact bytes of its head, so a test can say what was on the wire.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

_MAX_HEAD = 1 << 20
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER: on, for no seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginRequest:
    """One request as it came: ``head`` are the exact bytes up to the blank line."""

    head: bytes
    body: bytes
    connection: int  # the connections of an origin are numbered from 1

    @property
    def method(self) -> str:
        return self.head.split(b" ", 1)[0].decode("latin-1")

    @property
    def target(self) -> str:
        return self.head.split(b" ", 2)[1].decode("latin-1")

    @property
    def headers(self) -> dict[str, str]:
        """Names in lower case; of a header that is repeated, the last."""
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        pairs = (line.partition(":") for line in lines if line)
        return {name.lower(): value.strip() for name, _, value in pairs}


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginAnswer:
    """What the origin does with one request; the defaults give an ordinary 200.

    ``Content-Length`` is added unless ``chunked``, ``endless``, ``until_close`` or a
    header of that name (which may lie) says otherwise. Seconds throughout.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    delay: float = 0.0  # before anything is said
    drip: float = 0.0  # between the pieces of the body
    piece: int = 65_536  # bytes of the body written at a time
    chunked: bool = False
    until_close: bool = False  # no length: the end of the connection is the end
    endless: bool = False  # the body is repeated for ever
    closes: bool = False  # the connection is closed after the answer
    resets: bool = False  # the connection is reset after the answer
    raw: bytes | None = None  # sent instead of head and body, in the same manner
    silent: bool = False  # nothing is ever said


Script = OriginAnswer | Callable[[OriginRequest], OriginAnswer]


class Origin:
    """Listens on a loopback address while it is entered.

    ``connections`` counts what was accepted, so an origin that must not be reached
    can prove it.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.requests: list[OriginRequest] = []
        self.connections = 0
        self.disconnected = asyncio.Event()  # some peer has closed its connection
        self._arrival = asyncio.Event()
        self._host = host
        self._port = port
        self._tls = tls
        self._scripts: dict[str, list[Script]] = {}
        self._server: asyncio.Server | None = None
        self._conversations: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._converse, self._host, self._port, ssl=self._tls, limit=_MAX_HEAD
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._conversations:
            task.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)

    @property
    def port(self) -> int:
        return self._port

    def url(self, path: str = "/", *, host: str = "") -> str:
        """The address of a path, under another name for this host if one is given."""
        scheme = "http" if self._tls is None else "https"
        literal = f"[{self._host}]" if ":" in self._host else self._host
        return f"{scheme}://{host or literal}:{self._port}{path}"

    def serve(self, path: str, *answers: Script) -> None:
        """Answer requests for a path in turn; the last answer stays."""
        self._scripts[path] = list(answers)

    async def wait_for_requests(self, count: int = 1, seconds: float = 60.0) -> None:
        """Until so many have come; raises TimeoutError when they do not."""
        async with asyncio.timeout(seconds):
            while len(self.requests) < count:
                self._arrival.clear()
                await self._arrival.wait()

    async def _converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._conversations.add(task)
        self.connections += 1
        number = self.connections
        try:
            while await self._answer_one(reader, writer, number):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the peer, or the end of the test, closed the connection
        finally:
            self.disconnected.set()
            self._conversations.discard(task)
            writer.close()

    async def _answer_one(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> bool:
        request = await _read_request(reader, number)
        self.requests.append(request)
        self._arrival.set()
        answer = self._choose(request)
        await asyncio.sleep(answer.delay)
        if answer.silent:
            await reader.read()
            return False
        async for part in _written(answer, request.method):
            writer.write(part)
            await writer.drain()
        if answer.resets:
            _reset(writer)
        return not (answer.closes or answer.resets or answer.until_close)

    def _choose(self, request: OriginRequest) -> OriginAnswer:
        scripts = self._scripts.get(urlsplit(request.target).path)
        if scripts is None:
            return OriginAnswer(status=404)
        script = scripts.pop(0) if len(scripts) > 1 else scripts[0]
        return script if isinstance(script, OriginAnswer) else script(request)


def redirect(target: str, status: int = 301) -> OriginAnswer:
    return OriginAnswer(status=status, headers={"Location": target})


async def _read_request(reader: asyncio.StreamReader, number: int) -> OriginRequest:
    head = await reader.readuntil(b"\r\n\r\n")
    bare = OriginRequest(head=head, body=b"", connection=number)
    length = int(bare.headers.get("content-length", "0"))
    body = await reader.readexactly(length)
    return OriginRequest(head=head, body=body, connection=number)


async def _written(answer: OriginAnswer, method: str) -> AsyncIterator[bytes]:
    if answer.raw is not None:
        async for piece in _pieces(replace(answer, body=answer.raw)):
            yield piece
        return
    yield _head(answer)
    if method == "HEAD" or answer.status in (204, 304):
        return
    async for piece in _pieces(answer):
        yield b"%x\r\n%s\r\n" % (len(piece), piece) if answer.chunked else piece
    if answer.chunked:
        yield b"0\r\n\r\n"


def _head(answer: OriginAnswer) -> bytes:
    lines = [f"HTTP/1.1 {answer.status} Scripted"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    named = {name.lower() for name in answer.headers}
    if answer.chunked:
        lines.append("Transfer-Encoding: chunked")
    elif answer.until_close or answer.endless or answer.status in (204, 304):
        pass
    elif "content-length" not in named:
        lines.append(f"Content-Length: {len(answer.body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


async def _pieces(answer: OriginAnswer) -> AsyncIterator[bytes]:
    while True:
        for start in range(0, len(answer.body), answer.piece):
            if start or answer.drip:
                await asyncio.sleep(answer.drip)
            yield answer.body[start : start + answer.piece]
        if not answer.endless:
            return


def _reset(writer: asyncio.StreamWriter) -> None:
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    writer.transport.abort()
