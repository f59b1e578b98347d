"""``GET /stream`` as server-sent events.

They are written to the connection (`HttpProtocol`), built once for many clients,
without a queue and a task for each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from http import HTTPStatus
from typing import Any, Protocol, cast

import structlog
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from hub.live.live_connections import (
    LARGEST_BACKLOG,
    Client,
    ClientWriter,
    Interest,
    TooManyTopics,
    UnknownTopic,
)
from hub.live.prepared_message import PreparedMessage
from hub.services.live_access import LiveService
from hub.services.token_authentication import Principal
from hub.web.authentication import CHALLENGE, Authenticator
from hub.web.problems import Problem
from hub.web.rate_limits import RateLimits
from hub.web.request_input import combined_field
from hub.web.server.http_protocol import HTTP_EXTENSION, HttpProtocol
from hub.web.streams.stream_requests import (
    find_principal,
    last_event_of,
    read_stream_request,
    refuse_without_room,
)
from protocols.live.live_messages import Closed, Closing, Subscribe
from protocols.live.message_encoding import EVENT_STREAM
from protocols.protocol_errors import InvalidValue
from storage.errors import StorageError

CLOSE_SECONDS = 5.0


def hold_connection(scope: Scope) -> None:
    """Call `HttpProtocol.hold`; does nothing if another server runs the application."""
    http = scope.get("extensions", {}).get(HTTP_EXTENSION)
    if http is not None:
        cast("HttpProtocol", http).hold()


class EventWriter:
    """The body of a ``text/event-stream`` answer that has begun on a connection.

    ``closed`` is set to the reason when the answer is to end.
    """

    def __init__(self, scope: Scope) -> None:
        self._http = cast("HttpProtocol", scope["extensions"][HTTP_EXTENSION])
        self._http.has_writer = True
        self._http.hold()
        self.sent_messages = self.sent_bytes = 0
        self.closed: asyncio.Future[Closing] = self._http.loop.create_future()

    def write(self, message: PreparedMessage) -> None:
        self.write_chunk(message.event_chunk)

    def write_chunk(self, chunk: bytes) -> None:
        transport = self._http.transport
        if self.closed.done() or transport.is_closing():
            return
        if transport.get_write_buffer_size() > LARGEST_BACKLOG:
            transport.abort()  # the client would not read a reason either
        else:
            transport.write(chunk)
            self.sent_messages += 1
            self.sent_bytes += len(chunk)

    @property
    def waiting(self) -> int:
        return self._http.transport.get_write_buffer_size()

    async def room(self) -> None:
        await self._http.flow.drain()

    def close(self, closing: Closing) -> None:
        """End the answer; its last event states the reason."""
        if not self.closed.done():
            self.write(_farewell(closing))
            self.closed.set_result(closing)
            self._http.loop.call_later(CLOSE_SECONDS, self._http.transport.abort)


class LineWriter(EventWriter):
    """The body of an answer made of documents, each of which ends a line."""

    def write(self, message: PreparedMessage) -> None:
        if message.line_chunk:  # an empty one would end the body
            self.write_chunk(message.line_chunk)


class BodyEventWriter(EventWriter):
    """Like `EventWriter`; the data of a notification is its body alone."""

    def write(self, message: PreparedMessage) -> None:
        self.write_chunk(message.body_event_chunk)


@cache
def _farewell(closing: Closing) -> PreparedMessage:
    return PreparedMessage(Closed(code=closing.code, reason=closing.reason))


HEADERS = [
    (b"content-type", f"{EVENT_STREAM}; charset=utf-8".encode()),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # proxies would otherwise buffer it
    (b"access-control-allow-origin", b"*"),
]
log = structlog.get_logger()


class EventStream:
    """An ASGI application. Every error is answered before the stream begins."""

    def __init__(
        self, live: LiveService, authenticator: Authenticator, limits: RateLimits
    ) -> None:
        self._live = live
        self._authenticator = authenticator
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request with events. Raises what `as_problem` knows."""
        request = Request(scope)
        if not accepts_events(combined_field(request.headers, "accept")):
            raise Problem(
                HTTPStatus.NOT_ACCEPTABLE,
                f"expected a websocket, or Accept: {EVENT_STREAM}",
            )
        await self.answer(await self._principal(request), scope, receive, send)

    async def answer(
        self, principal: Principal | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer a principal who may listen. Raises like `__call__`."""
        request = Request(scope)
        interests = await self._interests(principal, request)
        address = self._limits.client(request)
        client = self._live.client(principal, may_ask=False, address=address)
        refuse_without_room(self._live.stream, client)
        await send(
            {
                "type": "http.response.start",
                "status": HTTPStatus.OK.value,
                "headers": HEADERS,
            }
        )
        if request.method != "HEAD":
            writer = EventWriter(scope)
            await serve(self._live, client, interests, writer, receive, "sse")
        await send({"type": "http.response.body"})

    async def _principal(self, request: Request) -> Principal | None:
        principal = await find_principal(request, self._authenticator)
        if not self._live.may_listen(principal):
            raise Problem(
                HTTPStatus.UNAUTHORIZED,
                "requires a token with the `retrieve` scope",
                headers={"WWW-Authenticate": CHALLENGE},
            )
        return principal

    async def _interests(
        self, principal: Principal | None, request: Request
    ) -> list[Interest]:
        requests = _requests(request)
        try:
            self._live.check_count(len(requests))
            return [await self._live.find(principal, each) for each in requests]
        except UnknownTopic as error:
            raise Problem(HTTPStatus.NOT_FOUND, str(error), field="topic") from error
        except TooManyTopics as error:
            raise Problem(
                HTTPStatus.UNPROCESSABLE_ENTITY, str(error), field="topic"
            ) from error


def _requests(request: Request) -> list[Subscribe]:
    wanted = read_stream_request(request)
    if not wanted.topics:
        raise InvalidValue("topic", "at least one")
    if last := last_event_of(request):
        # The client reconnects: the cursor in its URL is older by now.
        return [replace(each, cursor=last) for each in wanted.requests()]
    return wanted.requests()


class Ending(ClientWriter, Protocol):
    """A writer whose ``closed`` is set when the answer is to end."""

    @property
    def closed(self) -> asyncio.Future[Any]: ...


async def serve(
    live: LiveService,
    client: Client,
    interests: Sequence[Interest],
    writer: Ending,
    receive: Receive,
    transport: str,
) -> None:
    """Serve until the client disconnects, or the hub or the writer ends the answer."""
    async with asyncio.TaskGroup() as tasks:
        leaving = tasks.create_task(_until_gone(receive))
        connected = live.stream.connected(writer, tasks, transport, client)
        with connected as connection:
            try:
                await live.subscribe(connection, interests)
                await asyncio.wait(
                    (leaving, writer.closed), return_when=asyncio.FIRST_COMPLETED
                )
            except StorageError as error:
                log.warning("live_request_failed", error=str(error))
            finally:
                leaving.cancel()


async def until_over(writer: Ending, receive: Receive) -> None:
    """Wait until the client disconnects or the writer ends the answer."""
    async with asyncio.TaskGroup() as tasks:
        leaving = tasks.create_task(_until_gone(receive))
        await asyncio.wait(
            (leaving, writer.closed), return_when=asyncio.FIRST_COMPLETED
        )
        leaving.cancel()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def accepts_events(accept: str) -> bool:
    """Whether an ``Accept`` header allows event streams; an empty one allows
    everything."""
    for each in accept.lower().split(",") if accept.strip() else ("*/*",):
        kind, *parameters = (part.strip() for part in each.split(";"))
        if kind in (EVENT_STREAM, "text/*", "*/*"):
            weights = [it[2:] for it in parameters if it.startswith("q=")]
            return not weights or weights[0].strip("0.") != ""
    return False
