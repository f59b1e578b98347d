"""A webhook receiver written on raw asyncio: it answers as scripted and remembers.

Every path is its own subscriber. Without a script it answers 200 at once; a script
says the status, headers and delay, or how to misbehave: hang, drip, reset. Requests are
kept with headers, body and time, so that a test can ask who got what, when, and whether
it was signed with the right secret. Fast enough to be the sink of a benchmark.

`Callbacks` is a network without sockets whose callbacks all answer alike.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import socket
import struct
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, cast
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """How one request is answered. Times are in seconds."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    delay: float = 0.0  # before the answer
    hang: bool = False  # read the request and never say a word
    drip: float = 0.0  # between the single bytes of the answer
    reset: bool = False  # RST in place of an answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request as it came; ``at`` is `time.monotonic` when it was complete."""

    method: str
    target: str  # path and query
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    at: float

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        """Parameters of the target; of a repeated one the last."""
        values = parse_qs(urlsplit(self.target).query, keep_blank_values=True)
        return {name: all_values[-1] for name, all_values in values.items()}

    def is_signed_with(self, secret: str) -> bool:
        """Whether ``X-Hub-Signature`` is the HMAC of this body under that secret."""
        method, _, digest = self.headers.get("x-hub-signature", "").partition("=")
        if method not in ("sha1", "sha256", "sha384", "sha512"):
            return False
        expected = hmac.new(secret.encode(), self.body, getattr(hashlib, method))
        return hmac.compare_digest(expected.hexdigest(), digest)


class Receiver:
    """Listens on 127.0.0.1, port 0, while it is entered.

    ``keeps`` False only counts the requests, for benchmarks.
    """

    def __init__(self, *, keeps: bool = True) -> None:
        self.requests: list[Received] = []
        self.counts: Counter[str] = Counter()
        self.open_requests: Counter[str] = Counter()
        self.most_open: Counter[str] = Counter()  # of each path at once
        self.most_open_in_all = 0
        self.keeps = keeps
        self._open_in_all = 0
        self._scripts: dict[str, list[Script]] = {}
        self._by_path: dict[str, list[Received]] = defaultdict(list)
        self._connections: set[_Connection] = set()
        self._waiters: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        self._server: asyncio.Server | None = None
        self._url = ""

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Connection(self), "127.0.0.1", 0, backlog=4096
        )
        host, port = self._server.sockets[0].getsockname()
        self._url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for connection in list(self._connections):
            connection.abort()
        await asyncio.sleep(0)

    def url(self, path: str) -> str:
        return self._url + path

    def script(self, path: str, *scripts: Script) -> None:
        """Answer that path's requests so, one after the other; the last one stays."""
        self._scripts[path] = list(scripts)

    def to(self, path: str) -> list[Received]:
        """What that path got, in order."""
        return self._by_path[path]

    async def until(self, holds: Callable[[], bool], *, seconds: float = 60.0) -> None:
        """Wait for a condition on what was received, or raise `TimeoutError`."""
        if holds():
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((holds, future))
        async with asyncio.timeout(seconds):
            await future

    async def until_count(
        self, path: str, count: int, *, seconds: float = 60.0
    ) -> None:
        await self.until(lambda: self.counts[path] >= count, seconds=seconds)

    def take(self, request: Received, path: str) -> Script:
        """Remember a request and say how it is answered."""
        self.counts[path] += 1
        self.open_requests[path] += 1
        self.most_open[path] = max(self.most_open[path], self.open_requests[path])
        self._open_in_all += 1
        self.most_open_in_all = max(self.most_open_in_all, self._open_in_all)
        if self.keeps:
            self.requests.append(request)
            self._by_path[path].append(request)
        if self._waiters:
            self._wake()
        if request.method == "GET" and "hub.challenge" in request.query:
            return Script(body=request.query["hub.challenge"].encode())
        scripts = self._scripts.get(path)
        if scripts is None:
            return _PLAIN
        return scripts.pop(0) if len(scripts) > 1 else scripts[0]

    def release(self, path: str) -> None:
        self.open_requests[path] -= 1
        self._open_in_all -= 1

    def opened(self, connection: _Connection) -> None:
        self._connections.add(connection)

    def closed(self, connection: _Connection) -> None:
        self._connections.discard(connection)

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for holds, future in waiters:
            if future.done():
                continue
            if holds():
                future.set_result(None)
            else:
                self._waiters.append((holds, future))


_PLAIN = Script()
_PLAIN_ANSWER = b"HTTP/1.1 200 Scripted\r\nContent-Length: 0\r\n\r\n"


class _Connection(asyncio.Protocol):
    """One kept-alive connection: requests with ``Content-Length``, one at a time."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._buffer = bytearray()
        self._busy = ""  # the path whose answer is due
        self._answering: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._receiver.opened(self)

    def connection_lost(self, error: Exception | None) -> None:
        if self._answering is not None:
            self._answering.cancel()
        self._finish()
        self._receiver.closed(self)

    def abort(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while not self._busy and (request := self._read_request()) is not None:
            self._serve(request)

    def _read_request(self) -> Received | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        length = int(headers.get("content-length", "0"))
        start = end + 4
        if len(self._buffer) < start + length:
            return None
        body = bytes(self._buffer[start : start + length])
        del self._buffer[: start + length]
        method, target, _version = first.split(" ")
        return Received(
            method=method,
            target=target,
            headers=headers,
            body=body,
            at=time.monotonic(),
        )

    def _serve(self, request: Received) -> None:
        self._busy = request.target.partition("?")[0]
        script = self._receiver.take(request, self._busy)
        if script is _PLAIN:
            self._transport.write(_PLAIN_ANSWER)
            self._finish()
        elif script.reset:
            self._reset()
        elif not script.hang:
            self._answering = asyncio.get_running_loop().create_task(
                self._answer(script)
            )

    async def _answer(self, script: Script) -> None:
        await asyncio.sleep(script.delay)
        answer = _encode(script)
        if script.drip:
            for byte in answer:
                self._transport.write(bytes((byte,)))
                await asyncio.sleep(script.drip)
        else:
            self._transport.write(answer)
        self._answering = None
        self._finish()
        self.data_received(b"")

    def _finish(self) -> None:
        if self._busy:
            self._receiver.release(self._busy)
            self._busy = ""

    def _reset(self) -> None:
        peer = self._transport.get_extra_info("socket")
        linger_none = struct.pack("ii", 1, 0)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_none)
        self._transport.abort()


def _encode(script: Script) -> bytes:
    headers = {"Content-Length": str(len(script.body)), **script.headers}
    lines = [f"HTTP/1.1 {script.status} Scripted"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + script.body
