"""Answers that are long in coming, or without end, on a connection of `HttpProtocol`.

They are written what was built for many, without a queue and a task for each.
"""

from __future__ import annotations

import asyncio
from functools import cache
from typing import cast

from starlette.types import Scope

from hub.live.outlet import LARGEST_BACKLOG
from hub.live.prepared import Prepared
from hub.web.http_protocol import HTTP_EXTENSION, HttpProtocol
from protocols.live.closing import Closing
from protocols.live.messages import Closed

CLOSE_SECONDS = 5.0


def hold_connection(scope: Scope) -> None:
    """See `HttpProtocol.hold`. Nothing where something else serves."""
    http = scope.get("extensions", {}).get(HTTP_EXTENSION)
    if http is not None:
        cast("HttpProtocol", http).hold()


class EventOutlet:
    """The body of a ``text/event-stream`` answer that has begun on a connection.

    ``closed`` is set when it is to end, with what makes it end.
    """

    def __init__(self, scope: Scope) -> None:
        self._http = cast("HttpProtocol", scope["extensions"][HTTP_EXTENSION])
        self._http.has_outlet = True
        self._http.hold()
        self.closed: asyncio.Future[Closing] = self._http.loop.create_future()

    def write(self, message: Prepared) -> None:
        self.write_chunk(message.event_chunk)

    def write_chunk(self, chunk: bytes) -> None:
        transport = self._http.transport
        if self.closed.done() or transport.is_closing():
            return
        if transport.get_write_buffer_size() > LARGEST_BACKLOG:
            transport.abort()  # it would not take a reason either
        else:
            transport.write(chunk)

    async def room(self) -> None:
        await self._http.flow.drain()

    def close(self, closing: Closing) -> None:
        """Its last event says why."""
        if not self.closed.done():
            self.write(_farewell(closing))
            self.closed.set_result(closing)
            self._http.loop.call_later(CLOSE_SECONDS, self._http.transport.abort)


class LineOutlet(EventOutlet):
    """The body of an answer made of documents, each of which ends a line."""

    def write(self, message: Prepared) -> None:
        if message.line_chunk:  # an empty one would end the body
            self.write_chunk(message.line_chunk)


class BodyEventOutlet(EventOutlet):
    """As `EventOutlet`; the data of a notification is its body alone."""

    def write(self, message: Prepared) -> None:
        self.write_chunk(message.body_event_chunk)


@cache
def _farewell(closing: Closing) -> Prepared:
    return Prepared(Closed(code=closing.code, reason=closing.reason))
