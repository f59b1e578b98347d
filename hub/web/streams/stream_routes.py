"""``GET /stream``: a websocket, or server-sent events."""

from __future__ import annotations

from typing import Annotated, Any

from starlette.routing import BaseRoute, Route, WebSocketRoute

from hub.runtime.clock import SystemClock
from hub.services.live_access import LiveService
from hub.web.authentication import Authenticator
from hub.web.json_output import JsonObject, named_schema
from hub.web.operation import ANY_TOKEN, Operation, Parameter, Routes
from hub.web.rate_limits import RateLimits
from hub.web.streams.event_stream import EventStream
from hub.web.streams.stream_requests import STREAM_PATH
from hub.web.streams.websocket_stream import MessageStream
from protocols.live.live_messages import BodyFormat, WantedUpdates
from protocols.live.message_encoding import EVENT_STREAM


class StreamNotificationJson(JsonObject):
    """The data of an event ``notification``; ``body`` is text where it is Atom."""

    type: str
    topic: str
    cursor: str
    prev: str | None
    kind: Annotated[str, named_schema("StreamKind")]
    body: dict[str, Any] | str


class StreamResetJson(JsonObject):
    """The data of an event ``reset``: something was missed that cannot be sent."""

    type: str
    topic: str
    cursor: str


_EVENTS = Operation(
    method="GET",
    path=STREAM_PATH,
    id="stream",
    summary="New entries as server-sent events, or a websocket",
    description="Of each `topic`, from `cursor` or `Last-Event-ID` on. Events are"
    " named notification and reset; their data are StreamNotification and StreamReset,"
    " their id is the cursor. As a websocket it exchanges JSON messages, which the"
    " reference describes.",
    query=(
        Parameter(
            name="topic",
            help="the URL of a feed of this hub",
            is_required=True,
            is_repeated=True,
        ),
        Parameter(name="cursor", help="send everything after it"),
        Parameter(
            name="format", help="the format of bodies", choices=tuple(BodyFormat)
        ),
        Parameter(
            name="updates",
            help="whether updates of known entries are sent",
            choices=tuple(WantedUpdates),
        ),
    ),
    answers={200: {EVENT_STREAM: str}},
    problems=(401, 403, 404, 406, 422, 429, 503),
    security=ANY_TOKEN,
)


class StreamRoutes(Routes):
    """Both handlers are ASGI applications, which write to the connection itself."""

    tag = "streams"

    def __init__(
        self,
        live: LiveService,
        authenticator: Authenticator,
        limits: RateLimits | None = None,
    ) -> None:
        limits = limits or RateLimits()
        self._events = EventStream(live, authenticator, limits)
        self._messages = MessageStream(live, authenticator, SystemClock(), limits)

    @classmethod
    def operations(cls) -> tuple[Operation, ...]:
        return (_EVENTS,)

    def routes(self) -> list[BaseRoute]:
        return [
            WebSocketRoute(STREAM_PATH, self._messages),
            Route(STREAM_PATH, self._events, methods=[_EVENTS.method]),
        ]
