"""An OpenFeeder site on loopback."""

from __future__ import annotations

from typing import Self
from urllib.parse import parse_qsl, urlsplit

from tests.support.http_server import Served, ServerAnswer, ServerRequest
from tests.support.openfeeder import FeederSite, Ways


class FeederServer(Served):
    """Serves ``site``; its front page, if there is one, at ``/``."""

    def __init__(self, ways: Ways | None = None, page: bytes = b"") -> None:
        self.site = FeederSite(ways=ways or Ways())
        self.documents = {"/": page} if page else {}
        super().__init__()

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.site.base = self._server.url
        return self

    @property
    def url(self) -> str:
        return f"{self._server.url}/"

    @property
    def front(self) -> str:
        return f"{self._server.url}{self.site.ways.discovery}"

    async def _answer(self, request: ServerRequest) -> ServerAnswer:
        parts = urlsplit(request.target)
        if parts.path in self.documents:
            type = {"Content-Type": "text/html"}
            return ServerAnswer(headers=type, body=self.documents[parts.path])
        query = dict(parse_qsl(parts.query))
        answer = self.site.answer(parts.path, query, request.headers)
        return ServerAnswer(
            status=answer.status, headers=answer.headers, body=answer.body
        )
