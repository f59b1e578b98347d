"""Requests that this hub makes of itself, by whatever name it has reached itself.

Its own address is known under `OwnTopics`; another name of its host, a redirect from
outside or an address are not. What it says of itself in every request is.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from hub.web.problems import Problem, problem_response

_ROBOTS: Final = "/robots.txt"
"""Asked for before the page that is refused, which is what the feed's status is to
say; were it refused, that would say that robots.txt cannot be read."""


class RefuseOwnRequests:
    """ASGI middleware: answers 508 to requests whose User-Agent is the hub's. Others
    may be of a site on the same origin.

    A hub that read what it publishes would tell all of it again as news, and one that
    delivered to itself would be pinged by its own deliveries. RFC 5842 7.2: "the
    server terminated an operation because it encountered an infinite loop".
    """

    def __init__(self, app: ASGIApp, public_url: str) -> None:
        """``public_url`` "": nothing is refused."""
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
        return scope["path"] != _ROBOTS and any(
            name == b"user-agent" and self._mark.search(value)
            for name, value in scope["headers"]
        )


_LOOP = Problem(
    HTTPStatus.LOOP_DETECTED,
    "this is the hub that asks; it neither reads itself nor delivers to itself",
)
