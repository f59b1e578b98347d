"""Which pages of other origins may use ``/api``: Cross-Origin Resource Sharing.

Browsers first send an OPTIONS request without a token. Such a page has to know a token
and send it as Bearer: credentials that a browser adds by itself are refused
(`hub.web.authentication.RequireScope`).
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from hub.web.rate_limits import LimitHeaders, with_headers

EVERY_ORIGIN: Final = "*"
API: Final = "/api/"
_PREFLIGHT_SECONDS: Final = "86400"
_METHODS: Final = "GET, POST, PATCH, DELETE"
_TAKEN: Final = "Authorization, Content-Type"
_SHOWN: Final = (
    b"Retry-After, RateLimit, RateLimit-Policy, WWW-Authenticate, Link, Location"
)


def is_admitted(connection: HTTPConnection, origins: tuple[str, ...]) -> bool:
    """Whether pages of the request's origin may use the API."""
    origin = connection.headers.get("origin")
    return origin is not None and (origin in origins or EVERY_ORIGIN in origins)


class CrossOriginMiddleware:
    """ASGI middleware: lets pages of the ``origins`` use ``/api``.

    It answers their preflight requests and lets them read answers, whether or not there
    is anything at a path.
    """

    def __init__(self, app: ASGIApp, origins: tuple[str, ...]) -> None:
        self._app = app
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = HTTPConnection(scope)
        is_covered = scope["type"] == "http" and scope["path"].startswith(API)
        if not is_covered or not self._origins:
            await self._app(scope, receive, send)
        elif not is_admitted(connection, self._origins):
            await self._app(scope, receive, with_headers(send, _VARY))
        elif self._is_preflight(connection):
            await _preflight(connection)(scope, receive, send)
        else:
            headers = (*_allow(connection), *_VARY, *_EXPOSE)
            await self._app(scope, receive, with_headers(send, headers))

    def _is_preflight(self, connection: HTTPConnection) -> bool:
        is_asked = "access-control-request-method" in connection.headers
        return connection.scope["method"] == "OPTIONS" and is_asked


_VARY: Final[LimitHeaders] = ((b"vary", b"Origin"),)
_EXPOSE: Final[LimitHeaders] = ((b"access-control-expose-headers", _SHOWN),)


def _allow(connection: HTTPConnection) -> LimitHeaders:
    origin = connection.headers["origin"].encode("latin-1")
    return ((b"access-control-allow-origin", origin),)


def _preflight(connection: HTTPConnection) -> Response:
    return Response(
        status_code=HTTPStatus.NO_CONTENT,
        headers={
            "Access-Control-Allow-Origin": connection.headers["origin"],
            "Access-Control-Allow-Methods": _METHODS,
            "Access-Control-Allow-Headers": _TAKEN,
            "Access-Control-Max-Age": _PREFLIGHT_SECONDS,
            "Vary": "Origin",
        },
    )
