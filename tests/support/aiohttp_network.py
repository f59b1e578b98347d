"""A network that sends requests by aiohttp, to compare the hub's own client with.

It has no guard and looks up no names, so it is for loopback only. aiohttp's failures
become the hub's errors, as they did when the hub still used aiohttp.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from aiohttp import (
    ClientError,
    ClientPayloadError,
    ClientResponse,
    ClientResponseError,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    ServerDisconnectedError,
)

from hub.http import Answer, Request
from hub.http.decompression import Decompressor
from hub.http.network_errors import (
    BadAnswer,
    NetworkError,
    TimedOut,
    TooLarge,
    Unreachable,
)
from hub.http.response_parser import AnswerHeaders

_FAILURES = (ClientError, OSError, TimeoutError, ValueError)


class AiohttpNetwork:
    async def __aenter__(self) -> Self:
        self._session = ClientSession(
            cookie_jar=DummyCookieJar(), auto_decompress=False, trust_env=False
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def send(self, request: Request) -> Answer:
        limits = request.limits
        try:
            response = await self._session.request(
                request.method,
                request.url,
                headers=request.headers,
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
                data=request.body,
                allow_redirects=False,
                timeout=ClientTimeout(
                    total=limits.seconds, sock_read=limits.idle_seconds
                ),
            )
        except _FAILURES as failure:
            raise _explain(failure) from failure
        body, complete = await _read(response, request)
        return Answer(
            url=request.url,
            status=response.status,
            headers=AnswerHeaders(
                [
                    (name.lower().encode(), value.encode(errors="surrogateescape"))
                    for name, value in response.headers.items()
                ]
            ),
            body=body,
            complete=complete,
            milliseconds=0,
        )


async def _read(response: ClientResponse, request: Request) -> tuple[bytes, bool]:
    try:
        if request.cuts_body or not 200 <= response.status < 300:
            return await _read_beginning(response, request.cut)
        return await _read_whole(response, request.limits.body_bytes), True
    except NetworkError as error:
        error.status = response.status
        raise
    except _FAILURES as failure:
        raise _explain(failure, response.status) from failure
    finally:
        response.close()


async def _read_whole(response: ClientResponse, limit: int) -> bytes:
    if (response.content_length or 0) > limit:
        raise TooLarge(limit)
    inflation = Decompressor(
        ", ".join(dict.fromkeys(response.headers.getall("Content-Encoding", []))), limit
    )
    while piece := await response.content.readany():
        inflation.feed(piece)
    return inflation.finish()


async def _read_beginning(response: ClientResponse, cut: int) -> tuple[bytes, bool]:
    pieces: list[bytes] = []
    try:
        while piece := await response.content.readany():
            pieces.append(piece)
            if sum(map(len, pieces)) > cut:
                return b"".join(pieces)[:cut], False
    except _FAILURES:
        return b"".join(pieces), False
    return b"".join(pieces), True


def _explain(failure: Exception, status: int = 0) -> NetworkError:
    if isinstance(failure, TimeoutError):
        return TimedOut("no answer in time", status)
    if isinstance(failure, ClientResponseError):
        return BadAnswer("the answer is not valid HTTP")
    if isinstance(failure, ClientPayloadError):
        return BadAnswer("the answer ended early or is not valid HTTP", status)
    if isinstance(failure, ServerDisconnectedError):
        return BadAnswer("the server closed the connection without an answer")
    return Unreachable("the network failed")
