"""``/api/tokens``: what opens the API for whom."""

from __future__ import annotations

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hub.services.tokens import CreateToken, TokenService
from hub.web.decoding import Document, path_id, query_page, read_body
from hub.web.encoding import json_response, page_document, token_document
from storage.interface import TokenStore
from storage.records import Right, TokenId


class TokenToAdd(Document):
    """The body of ``POST /api/tokens``."""

    account: str
    rights: list[Right]
    label: str = ""
    value: str = ""


class TokenRoutes:
    def __init__(self, tokens: TokenService, stored: TokenStore) -> None:
        self._tokens = tokens
        self._stored = stored

    def routes(self) -> list[Route]:
        return [
            Route("/tokens", self.page, methods=["GET"]),
            Route("/tokens", self.add, methods=["POST"]),
            Route("/tokens/{id}", self.revoke, methods=["DELETE"]),
        ]

    async def add(self, request: Request) -> Response:
        body = await read_body(request, TokenToAdd)
        created = await self._tokens.create(
            CreateToken(
                account=body.account,
                rights=frozenset(body.rights),
                label=body.label,
                value=body.value,
            )
        )
        document = {**token_document(created.token), "token": created.secret}
        return json_response(document, HTTPStatus.CREATED, is_secret=True)

    async def page(self, request: Request) -> Response:
        after, limit = query_page(request)
        found = await self._stored.page(after=TokenId(after), limit=limit)
        items = [token_document(each) for each in found]
        return json_response(page_document("tokens", items, limit))

    async def revoke(self, request: Request) -> Response:
        token_id = TokenId(path_id(request, "token"))
        return json_response(token_document(await self._tokens.revoke(token_id)))
