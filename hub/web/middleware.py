"""Middleware for all routes: access log, meter, counts of readers, loop guard, limits,
traces of requests.

`hub.publishing.local_topics` recognizes topics at the hub's own address, which it does
not request. Under another name of its host, by a redirect or an IP address, the hub
might still request itself; `LoopGuard` refuses such requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import structlog
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hub.publishing.local_topics import PLAYGROUND_PATH
from hub.publishing.output_readers import OutputReaders, output_of
from hub.runtime.clock import Clock
from hub.runtime.metrics import RequestArea, RequestMeter
from hub.services.token_authentication import Principal
from hub.web.authentication import Authenticator
from hub.web.page_rendering import answer_problem
from hub.web.problems import Problem, problem_response
from hub.web.rate_limits import LimitHeaders, RateLimits, with_headers
from hub.web.streams.stream_requests import STREAM_PATH, find_principal
from protocols.http import TRACEPARENT
from storage.errors import StorageError
from storage.read_patience import READ_PATIENCE

if TYPE_CHECKING:
    from hub.runtime.telemetry import Traces

log = structlog.get_logger()

_OPEN_TO_ITSELF: Final = ("/robots.txt", PLAYGROUND_PATH)
"""Paths that the hub may request of itself.

With its robots.txt, a feed's status names the loop, not a robots.txt that cannot be
read. Topics and callbacks of the playground tell nothing of what the hub publishes.
"""


READ_SECONDS: Final = 3.0
"""How long a request waits for a database that does not answer."""
_LONGEST_PATH: Final = 200
_SECRET_PATHS: Final = re.compile(
    r"(/upstream|/hub/subscriptions|^/playground/\w+)/.*", re.DOTALL
)
"""Paths that end in a secret: whoever knows one may use what it names."""


class LimitReads:
    """ASGI middleware: answers an error if the database does not answer in time.

    Live streams are not limited.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] != STREAM_PATH:
            READ_PATIENCE.set(READ_SECONDS)
        await self._app(scope, receive, send)


class AccessLog:
    """ASGI middleware: logs requests when they are answered, websockets when closed.

    Queries are left out: they may hold tokens.
    """

    def __init__(self, app: ASGIApp, limits: RateLimits, clock: Clock) -> None:
        self._app = app
        self._limits = limits
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        started, answer = self._clock.monotonic(), _LoggedAnswer(send)
        try:
            await self._app(scope, receive, answer.send)
        finally:
            seconds = self._clock.monotonic() - started
            status = answer.status or "cut off"
            log.info(
                f"{scope.get('method', 'WEBSOCKET')} {_shown_path(scope)} {status}",
                kind="access",
                client=self._limits.client(HTTPConnection(scope)),
                bytes=answer.size,
                milliseconds=round(seconds * 1000),
            )


class _LoggedAnswer:
    """Passes an answer on. ``status`` is 0 until the answer has begun."""

    def __init__(self, send: Send) -> None:
        self.status = 0
        self.size = 0
        self._send = send

    async def send(self, message: Message) -> None:
        match message["type"]:
            case "http.response.start":
                self.status = message["status"]
            case "http.response.body":
                self.size += len(message.get("body", b""))
            case "websocket.accept":
                self.status = HTTPStatus.SWITCHING_PROTOCOLS.value
            case "websocket.send":
                self.size += len(message.get("bytes") or message.get("text") or b"")
        await self._send(message)


def _shown_path(scope: Scope) -> str:
    path = str(scope["path"])[:_LONGEST_PATH]
    return _SECRET_PATHS.sub(r"\1/…", path)


class MeasureRequests:
    """ASGI middleware: counts requests, and measures the time until their answers
    begin."""

    def __init__(self, app: ASGIApp, meter: RequestMeter, clock: Clock) -> None:
        self._app = app
        self._meter = meter
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        area, started = area_of(scope), self._clock.monotonic()

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                seconds = self._clock.monotonic() - started
                self._meter.count(area, message["status"], seconds)
            await send(message)

        await self._app(scope, receive, send_counted)


_PARTS: Final[Mapping[RequestArea, str]] = {
    RequestArea.API: "api",
    RequestArea.PAGES: "admin account assets docs about search",
    RequestArea.HUB: "hub rpc upstream",
    RequestArea.SUPERFEEDR: "hubbub",
    RequestArea.STREAM: "stream",
    RequestArea.PUBLISHING: ".well-known myPublicFeeds.opml openfeeder robots.txt scp"
    " sitemap.xml topics",
    RequestArea.MONITORING: "healthz identity metrics readyz",
}
_AREAS: Final = {part: area for area, parts in _PARTS.items() for part in parts.split()}
"""Areas by the first part of the path."""


def area_of(scope: Scope) -> RequestArea:
    """The area of a request. ``/`` is a page, or Superfeedr's API if called with
    ``hub.mode``."""
    if scope["path"] == "/":
        is_call = scope["method"] == "POST" or b"hub.mode" in scope["query_string"]
        return RequestArea.SUPERFEEDR if is_call else RequestArea.PAGES
    first = scope["path"].split("/", 2)[1:2]
    return _AREAS.get("".join(first), RequestArea.OTHER)


class CountReaders:
    """ASGI middleware: counts the answered requests for each output."""

    def __init__(self, app: ASGIApp, readers: OutputReaders) -> None:
        self._app = app
        self._readers = readers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_read = scope["type"] == "http" and scope["method"] == "GET"
        output = output_of(scope["path"]) if is_read else None
        if output is None:
            await self._app(scope, receive, send)
            return

        async def note_answer(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                agent = Headers(scope=scope).get("user-agent", "")
                self._readers.note(output, agent)
            await send(message)

        await self._app(scope, receive, note_answer)


class LoopGuard:
    """ASGI middleware: answers 508 to requests whose User-Agent is the hub's own.

    A hub that read what it publishes would tell all of it again as news, and one that
    delivered to itself would be pinged by its own deliveries. RFC 5842 7.2: "the server
    terminated an operation because it encountered an infinite loop". A User-Agent that
    names another page of the same origin may be that of another site there.
    """

    def __init__(self, app: ASGIApp, public_url: str) -> None:
        """``public_url`` "": no request is refused."""
        self._app = app
        root = re.escape(public_url).encode()
        self._mark = re.compile(rb"\(\+%b/(?:about|hub)[;)]" % root)
        self._is_known = bool(public_url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._is_known and scope["type"] == "http" and self._is_own(scope):
            await problem_response(_LOOP)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _is_own(self, scope: Scope) -> bool:
        return not scope["path"].startswith(_OPEN_TO_ITSELF) and any(
            name == b"user-agent" and self._mark.search(value)
            for name, value in scope["headers"]
        )


class ContinueTraces:
    """ASGI middleware: a fetch that a request asks for is linked to its
    ``traceparent``."""

    def __init__(self, app: ASGIApp, traces: Traces) -> None:
        self._app = app
        self._traces = traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with self._traces.of_request(Headers(scope=scope).get(TRACEPARENT, "")):
            await self._app(scope, receive, send)


_LOOP = Problem(
    HTTPStatus.LOOP_DETECTED,
    "the request comes from this hub, which neither reads nor delivers to itself",
)


TOPICS_OF_A_REQUEST = 10
"""So many topics of a live stream count as one request.

To find them takes about as long as to answer another request.
"""


class LimitRequests:
    """ASGI middleware: counts the requests to the paths that it ``covers``.

    A request with a valid token counts for the token, whether or not the endpoint asks
    for one, so that people who share an address are not in each other's way. Any other
    counts for its address, also one with a wrong token, so that guessing is slow.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: RateLimits,
        authenticator: Authenticator,
        covers: Callable[[str], bool],
    ) -> None:
        self._app = app
        self._limits = limits
        self._authenticator = authenticator
        self._covers = covers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: LimitHeaders = ()
        try:
            if scope["type"] != "lifespan" and self._covers(scope["path"]):
                headers = await self._count(HTTPConnection(scope))
        except Problem as problem:
            answer = answer_problem(HTTPConnection(scope), problem)
            await answer(scope, receive, send)
        else:
            if scope.get("path") == STREAM_PATH:  # or each event would pass through
                headers = ()
            await self._app(scope, receive, with_headers(send, headers))

    async def _count(self, connection: HTTPConnection) -> LimitHeaders:
        """Count a request, and return headers for the answer; () if it is not limited.

        Raises `Problem` 429.
        """
        principal = await self._principal(connection)
        requests = _worth(connection)
        if principal is None:
            return self._limits.check_address(connection, requests)
        if principal.token is not None:
            return self._limits.check_token(principal.token, requests)
        return ()

    async def _principal(self, connection: HTTPConnection) -> Principal | None:
        try:
            return await find_principal(connection, self._authenticator)
        except (Problem, StorageError):  # an endpoint with a token answers it
            return None


def _worth(connection: HTTPConnection) -> int:
    """The number of requests that this request counts as."""
    if connection.scope["path"] != STREAM_PATH:
        return 1
    topics = len(connection.query_params.getlist("topic"))
    return max(1, -(-topics // TOPICS_OF_A_REQUEST))
