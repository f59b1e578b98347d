"""``/admin/live``: live connections, one of them, and a topic as it is sent."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from hub.runtime.clock import Clock
from hub.services.connection_reports import (
    SHOWN_TOPICS,
    ConnectionService,
    ConnectionSort,
    Transport,
)
from hub.web.admin.page_access import (
    OperatorPages,
    PageAccess,
    redirect,
    viewer_of,
    without_blanks,
)
from hub.web.admin.page_streams import CHECK_SECONDS
from hub.web.api.connection_routes import (
    CONNECTION_LIST,
    place_text,
    query_connections,
    query_place,
)
from hub.web.operation import HTML, Handler, Operation, Parameter
from hub.web.page_rendering import render_page
from hub.web.request_input import LARGEST_PAGE, path_id, query_choice, query_number
from hub.web.streams.event_stream import EventStream
from protocols.live.message_encoding import EVENT_STREAM
from storage.errors import StorageError

ROWS: Final = 50
"""Connections on a page, unless another number is requested."""
_TOPIC: Final = Parameter(name="topic", help="the URL of a feed, or a track query")


class LivePages(OperatorPages):
    def __init__(
        self, access: PageAccess, connections: ConnectionService, clock: Clock
    ) -> None:
        super().__init__(access)
        self._connections = connections
        self._clock = clock

    @Operation(
        method="GET",
        path="/admin/live",
        id="get_live_page",
        summary="The live connections, filtered and sorted",
        answers={200: {HTML: str}, 303: None},
        query=CONNECTION_LIST,
        problems=(403, 422, 429, 503),
    )
    async def page(self, request: Request) -> Response:
        """The parameters are those of ``GET /api/connections``; empty ones do not
        count."""
        asked = without_blanks(request)
        sort = query_choice(asked, "sort", ConnectionSort) or ConnectionSort.ID
        after = query_place(asked)
        page = self._connections.page(
            query_connections(asked),
            sort,
            after=after,
            limit=query_number(asked, "limit", ROWS, LARGEST_PAGE, least=1),
        )
        return render_page(
            "live.html",
            section="Live",
            viewer=viewer_of(request),
            now=self._clock.now(),
            counts=self._connections.counts(),
            page=page,
            next=place_text(page.next),
            is_first=after is None,
            sort=sort,
            query={
                name: value
                for name, value in asked.query_params.items()
                if name not in ("cursor", "done")
            },
            transports=tuple(Transport),
            words=_WORDS,
            done=_DONE.get(request.query_params.get("done", ""), ""),
        )

    @Operation(
        method="GET",
        path="/admin/live/tail",
        id="get_tail_page",
        summary="The notifications of a topic, as they come",
        answers={200: {HTML: str}, 303: None},
        query=(_TOPIC,),
        problems=(403, 429, 503),
    )
    async def tail(self, request: Request) -> Response:
        return render_page(
            "tail.html",
            section="Live",
            viewer=viewer_of(request),
            now=self._clock.now(),
            topic=request.query_params.get("topic", "").strip(),
        )

    @Operation(
        method="GET",
        path="/admin/live/{id}",
        id="get_connection_page",
        summary="One live connection: who, since when, to what, how much",
        answers={200: {HTML: str}, 303: None},
        problems=(403, 404, 429, 503),
    )
    async def show(self, request: Request) -> Response:
        return render_page(
            "connection.html",
            section="Live",
            viewer=viewer_of(request),
            now=self._clock.now(),
            each=self._connections.get(path_id(request, "connection")),
            most_topics=SHOWN_TOPICS,
            words=_WORDS,
        )

    @Operation(
        method="POST",
        path="/admin/live/{id}/disconnect",
        id="disconnect_of_page",
        summary="Send a live connection away",
        answers={303: None},
        problems=(403, 404, 429, 503),
    )
    async def disconnect(self, request: Request) -> Response:
        self._connections.disconnect(path_id(request, "connection"))
        return redirect("/admin/live?done=disconnected")


_WORDS: Final = {
    Transport.WEBSOCKET: "websocket",
    Transport.EVENTS: "event stream",
    Transport.STREAM: "document stream",
    Transport.POLL: "long poll",
}
_DONE: Final = {"disconnected": "The connection is being closed."}


class TailStreams(OperatorPages):
    """Event streams for an operator's page of a topic, also of a private one."""

    def __init__(self, access: PageAccess, events: EventStream) -> None:
        super().__init__(access)
        self._events = events

    def endpoint(self, handler: Handler) -> Handler:
        return self._access.guard(handler, is_stream=True)

    @Operation(
        method="GET",
        path="/admin/live/notifications",
        id="tail_topic_of_page",
        summary="The events of `/stream`, in the session of an operator",
        answers={200: {EVENT_STREAM: str}},
        query=(_TOPIC,),
        problems=(401, 403, 404, 422, 429, 503),
    )
    async def notifications(self, request: Request) -> Response:
        return _Tail(self._events, self._access, request)


class _Tail(Response):
    """A stream that ends soon after its session."""

    def __init__(
        self, events: EventStream, access: PageAccess, request: Request
    ) -> None:
        super().__init__()
        self._events = events
        self._access = access
        self._request = request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def receive_in_session() -> Message:
            waiting = asyncio.ensure_future(receive())
            try:
                while not (await asyncio.wait({waiting}, timeout=CHECK_SECONDS))[0]:
                    if await self._is_over():
                        return {"type": "http.disconnect"}
                return waiting.result()
            finally:
                waiting.cancel()

        principal = viewer_of(self._request).principal
        await self._events.answer(principal, scope, receive_in_session, send)

    async def _is_over(self) -> bool:
        with suppress(StorageError):  # checked again soon
            return await self._access.is_over(self._request)
        return False
