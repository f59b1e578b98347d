"""``GET /stream``: a websocket, or server-sent events."""

from __future__ import annotations

from starlette.routing import BaseRoute, Route, WebSocketRoute

from hub.clock import Clock, SystemClock
from hub.services.live import LiveService
from hub.web.authentication import Authenticator
from hub.web.stream_events import EventStream
from hub.web.stream_messages import MessageStream


class StreamRoutes:
    def __init__(
        self,
        live: LiveService,
        authenticator: Authenticator,
        clock: Clock | None = None,
    ) -> None:
        self._events = EventStream(live, authenticator)
        self._messages = MessageStream(live, authenticator, clock or SystemClock())

    def routes(self) -> list[BaseRoute]:
        return [
            WebSocketRoute("/stream", self._messages),
            Route("/stream", self._events, methods=["GET"]),
        ]
