"""A small HTTP/1.1 server on loopback for the test's side of a conversation.

It speaks what the hub needs and no more: requests with ``Content-Length``, kept-alive
connections, one answer each. What misbehaves on purpose is said by the answer: `None`
drops the connection without a word, and a handler that sleeps is a slow server.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRequest:
    method: str
    target: str  # path and query
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return {
            name: values[-1]
            for name, values in parse_qs(urlsplit(self.target).query).items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAnswer:
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    more_headers: Sequence[tuple[str, str]] = ()  # names may come again
    body: bytes = b""


Handler = Callable[[ServerRequest], Awaitable[ServerAnswer | None]]


class Served:
    """Something that a `WebServer` serves while it is entered, by ``_answer``."""

    def __init__(self) -> None:
        self._server = WebServer(self._answer)

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

    async def _answer(self, request: ServerRequest) -> ServerAnswer | None:
        raise NotImplementedError


class WebServer:
    """Listens on 127.0.0.1, port 0, while it is entered; with ``tls`` by https."""

    def __init__(self, handler: Handler, tls: ssl.SSLContext | None = None) -> None:
        self._handler = handler
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", 0, ssl=self._tls
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    @property
    def url(self) -> str:
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()
        return f"{'https' if self._tls else 'http'}://{host}:{port}"

    async def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._answer_one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the peer, or the end of the test, closed the connection
        finally:
            self._connections.discard(task)
            writer.close()

    async def _answer_one(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        request = await _read_request(reader)
        answer = await self._handler(request)
        if answer is None:
            return False
        writer.write(_encode(answer, request.method))
        await writer.drain()
        return request.headers.get("connection", "").lower() != "close"


async def _read_request(reader: asyncio.StreamReader) -> ServerRequest:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, target, _version = first.split(" ")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return ServerRequest(method=method, target=target, headers=headers, body=body)


def _encode(answer: ServerAnswer, method: str) -> bytes:
    has_body = answer.status not in (204, 304) and method != "HEAD"
    lines = [f"HTTP/1.1 {answer.status} Test"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    lines += [f"{name}: {value}" for name, value in answer.more_headers]
    if answer.status not in (204, 304):
        lines.append(f"Content-Length: {len(answer.body)}")
    head = "\r\n".join([*lines, "", ""]).encode("latin-1")
    return head + answer.body if has_body else head
