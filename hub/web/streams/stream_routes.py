"""``GET /stream``: a websocket, or server-sent events."""

from __future__ import annotations

from starlette.routing import BaseRoute, Route, WebSocketRoute

from hub.runtime.clock import Clock, SystemClock
from hub.services.live import LiveService
from hub.web.authentication import Authenticator
from hub.web.rate_limits import RateLimits
from hub.web.streams.stream_events import EventStream
from hub.web.streams.stream_messages import MessageStream
from hub.web.streams.stream_requests import STREAM_PATH


class StreamRoutes:
    def __init__(
        self,
        live: LiveService,
        authenticator: Authenticator,
        clock: Clock | None = None,
        limits: RateLimits | None = None,
    ) -> None:
        clock, limits = clock or SystemClock(), limits or RateLimits()
        self._events = EventStream(live, authenticator, limits)
        self._messages = MessageStream(live, authenticator, clock, limits)

    def routes(self) -> list[BaseRoute]:
        return [
            WebSocketRoute(STREAM_PATH, self._messages),
            Route(STREAM_PATH, self._events, methods=["GET"]),
        ]
