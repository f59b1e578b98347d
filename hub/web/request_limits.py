"""Every door but the API's, which counts by itself: how often it may be knocked at."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from hub.services.token_authentication import Principal
from hub.web.authentication import Authenticator
from hub.web.problems import Problem, problem_response
from hub.web.rate_limits import RateLimits
from hub.web.streams.stream_requests import STREAM_PATH, find_principal
from storage.errors import StorageError

TOPICS_OF_A_REQUEST = 10
"""Of a live stream: to find so many takes about as long as another request."""


class LimitRequests:
    """ASGI middleware: counts what is asked of the paths it ``covers``.

    By token if one is shown, whether or not the door asks for it: so many who share an
    address are not in each other's way. By address otherwise, wrong tokens included,
    so that guessing is slow.
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
        try:
            if scope["type"] != "lifespan" and self._covers(scope["path"]):
                await self._count(HTTPConnection(scope))
        except Problem as problem:
            await problem_response(problem)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _count(self, connection: HTTPConnection) -> None:
        principal = await self._principal(connection)
        requests = _worth(connection)
        if principal is None:
            self._limits.check_address(connection, requests)
        elif principal.token is not None:
            self._limits.check_token(principal.token, requests)

    async def _principal(self, connection: HTTPConnection) -> Principal | None:
        try:
            return await find_principal(connection, self._authenticator)
        except (Problem, StorageError):  # the door tells what is wrong, if it minds
            return None


def _worth(connection: HTTPConnection) -> int:
    """As how many requests it counts."""
    if connection.scope["path"] != STREAM_PATH:
        return 1
    topics = len(connection.query_params.getlist("topic"))
    return max(1, -(-topics // TOPICS_OF_A_REQUEST))
