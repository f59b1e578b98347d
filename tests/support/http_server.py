"""A small HTTP/1.1 server on loopback for the test's side of a conversation.

It does what the hub needs and no more: requests with ``Content-Length``, kept-alive
connections, one answer each. An answer says how it misbehaves: it is late, drips, never
ends, lies about its length, resets the connection or is no HTTP at all; None drops the
connection without an answer.
"""

from __future__ import annotations

import asyncio
import hmac
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from time import monotonic
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit

_MAX_HEAD = 1 << 20
_ALGORITHMS = ("sha1", "sha256", "sha384", "sha512")
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER: on, for no seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRequest:
    """One request as it came. ``head``: the exact bytes up to the blank line."""

    method: str
    target: str  # path and query
    headers: Mapping[str, str]  # names in lower case; of a repeated one the last
    body: bytes
    head: bytes = b""
    connection: int = 0  # the connections of a server are numbered from 1
    client: tuple[str, int] = ("", 0)  # the other end of the connection
    server: tuple[str, int] = ("", 0)  # this end
    at: float = 0.0  # monotonic seconds, when it was there as a whole

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return {
            name: values[-1]
            for name, values in parse_qs(
                urlsplit(self.target).query, keep_blank_values=True
            ).items()
        }

    def is_signed_with(self, secret: str, algorithm: str = "") -> bool:
        """Whether ``X-Hub-Signature`` is the HMAC of the body under that secret.

        ``algorithm``: the one it must have, if any.
        """
        used, _, digest = self.headers.get("x-hub-signature", "").partition("=")
        if used not in _ALGORITHMS or algorithm not in ("", used):
            return False
        expected = hmac.new(secret.encode(), self.body, used).hexdigest()
        return hmac.compare_digest(expected, digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAnswer:
    """How one request is answered; the defaults give an ordinary 200.

    ``Content-Length`` is added unless ``chunked``, ``endless``, ``until_close`` or a
    header of that name (which may lie) says otherwise. Times are in seconds.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    more_headers: Sequence[tuple[str, str]] = ()  # names may come again
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


Handler = Callable[[ServerRequest], Awaitable[ServerAnswer | None]]


class WebServer:
    """Listens on a loopback address while it is entered; with ``tls`` by https.

    ``connections`` counts those accepted, so that a server can prove it was not
    reached.
    """

    def __init__(
        self,
        handler: Handler,
        tls: ssl.SSLContext | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        ended: Callable[[ServerRequest], None] = lambda request: None,
    ) -> None:
        """Take ``ended``, called when a request is answered or its connection ends."""
        self._ended = ended
        self.connections = 0
        self.disconnected = asyncio.Event()  # some peer has closed its connection
        self.host = host
        self.port = port
        self._handler = handler
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._conversations: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._converse,
            self.host,
            self.port,
            ssl=self._tls,
            limit=_MAX_HEAD,
            backlog=4_096,
        )
        self.port = self._server.sockets[0].getsockname()[1]
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
    def url(self) -> str:
        return self.url_of()

    def url_of(self, host: str = "") -> str:
        """Its origin, under another name for this host if one is given."""
        literal = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self._tls else 'http'}://{host or literal}:{self.port}"

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
        request = replace(
            await _read_request(reader, number),
            client=writer.get_extra_info("peername")[:2],
            server=writer.get_extra_info("sockname")[:2],
        )
        try:
            return await self._reply(request, reader, writer)
        finally:
            self._ended(request)

    async def _reply(
        self,
        request: ServerRequest,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        answer = await self._handler(request)
        if answer is None:
            return False
        await asyncio.sleep(answer.delay)
        if answer.silent:
            await reader.read()
            return False
        async for part in _written(answer, request.method):
            writer.write(part)
            await writer.drain()
        if answer.resets:
            _reset(writer)
        is_over = answer.closes or answer.resets or answer.until_close
        return not is_over and request.headers.get("connection", "").lower() != "close"


Script = (
    ServerAnswer
    | Callable[[ServerRequest], ServerAnswer | None]
    | Callable[[ServerRequest], Awaitable[ServerAnswer | None]]
)
"""An answer, or a function of the request; None drops the connection."""


async def respond(script: Script, request: ServerRequest) -> ServerAnswer | None:
    if isinstance(script, ServerAnswer):
        return script
    answer = script(request)
    return await answer if isawaitable(answer) else answer


class Origin:
    """A server whose answers a test scripts by path; any other path is 404."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.requests: list[ServerRequest] = []
        self._change = asyncio.Event()
        self._scripts: dict[str, list[Script]] = {}
        self._server = WebServer(self._take, tls, host=host, port=port, ended=self._end)

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._server.__aexit__(kind, error, traceback)

    @property
    def connections(self) -> int:
        return self._server.connections

    @property
    def disconnected(self) -> asyncio.Event:
        return self._server.disconnected

    @property
    def port(self) -> int:
        return self._server.port

    def url(self, path: str = "/", *, host: str = "") -> str:
        """The address of a path, under another name for this host if one is given."""
        return self._server.url_of(host) + path

    @property
    def asked(self) -> list[str]:
        """The paths of all requests."""
        return [each.path for each in self.requests]

    def serve(self, path: str, *answers: Script) -> None:
        """Answer requests for a path in turn; the last answer stays."""
        self._scripts[path] = list(answers)

    async def wait_for_requests(self, count: int = 1, seconds: float = 60.0) -> None:
        """Wait until so many requests have come. Raises `TimeoutError`."""
        await self.until(lambda: len(self.requests) >= count, seconds=seconds)

    async def until(self, holds: Callable[[], bool], *, seconds: float = 60.0) -> None:
        """Wait for a condition on what has come and what was answered.

        Raises `TimeoutError`.
        """
        async with asyncio.timeout(seconds):
            while not holds():
                self._change.clear()
                await self._change.wait()

    async def _take(self, request: ServerRequest) -> ServerAnswer | None:
        self.requests.append(request)
        self._change.set()
        return await self._answer(request)

    async def _answer(self, request: ServerRequest) -> ServerAnswer | None:
        scripts = self._scripts.get(request.path)
        if scripts is None:
            return ServerAnswer(status=404)
        script = scripts.pop(0) if len(scripts) > 1 else scripts[0]
        return await respond(script, request)

    def _end(self, request: ServerRequest) -> None:
        """Note that a request was answered, or that its connection is gone."""
        self._change.set()


def redirect(target: str, status: int = 301) -> ServerAnswer:
    return ServerAnswer(status=status, headers={"Location": target})


async def _read_request(reader: asyncio.StreamReader, number: int) -> ServerRequest:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, target, _version = first.split(" ")
    pairs = (line.partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    return ServerRequest(
        method=method,
        target=target,
        headers=headers,
        body=await reader.readexactly(int(headers.get("content-length", "0"))),
        head=head,
        connection=number,
        at=monotonic(),
    )


async def _written(answer: ServerAnswer, method: str) -> AsyncIterator[bytes]:
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


def _head(answer: ServerAnswer) -> bytes:
    headers = [*answer.headers.items(), *answer.more_headers]
    lines = [f"HTTP/1.1 {answer.status} Scripted"]
    lines += [f"{name}: {value}" for name, value in headers]
    if answer.chunked:
        lines.append("Transfer-Encoding: chunked")
    elif answer.until_close or answer.endless or answer.status in (204, 304):
        pass
    elif "content-length" not in {name.lower() for name, _ in headers}:
        lines.append(f"Content-Length: {len(answer.body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


async def _pieces(answer: ServerAnswer) -> AsyncIterator[bytes]:
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
