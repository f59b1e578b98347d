"""``/api/subscriptions``: who is told of what."""

from __future__ import annotations

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hub.services.subscriptions import SubscriptionRequest, SubscriptionService
from hub.services.tokens import TokenService
from hub.web.authentication import principal_of, require
from hub.web.decoding import Document, path_id, query_flag, query_page, read_body
from hub.web.encoding import (
    feed_document,
    json_response,
    page_document,
    subscription_document,
    subscription_report_document,
)
from storage.interface import Storage
from storage.records import AccountId, Format, Right, SubscriptionId, Updates


class SubscriptionToAdd(Document):
    """The body of ``POST /api/subscriptions``.

    ``account``: "" for one's own.
    """

    callback: str
    topic: str
    account: str = ""
    secret: str = ""
    algorithm: str = "sha256"
    format: Format = Format.JSON
    updates: Updates = Updates.FRESH
    batch: bool = False


class SubscriptionRoutes:
    def __init__(
        self,
        subscriptions: SubscriptionService,
        tokens: TokenService,
        storage: Storage,
    ) -> None:
        self._storage = storage
        self._subscriptions = subscriptions
        self._tokens = tokens

    def routes(self) -> list[Route]:
        one = "/subscriptions/{id}"
        return [
            Route("/subscriptions", self.page, methods=["GET"]),
            Route("/subscriptions", self.add, methods=["POST"]),
            Route(one, self.show, methods=["GET"]),
            Route(one, self.remove, methods=["DELETE"]),
        ]

    async def add(self, request: Request) -> Response:
        body = await read_body(request, SubscriptionToAdd)
        result = await self._subscriptions.add(
            SubscriptionRequest(
                callback=body.callback,
                topic=body.topic,
                account=await self._account(request, body.account),
                secret=body.secret,
                algorithm=body.algorithm,
                format=body.format,
                updates=body.updates,
                batch=body.batch,
            )
        )
        document = subscription_document(result.subscription)
        return json_response(
            {**document, "feed_status": feed_document(result.feed)},
            HTTPStatus.CREATED if result.is_new else HTTPStatus.OK,
        )

    async def page(self, request: Request) -> Response:
        after, limit = query_page(request)
        found = await self._storage.subscriptions.page(
            after=SubscriptionId(after),
            limit=limit,
            account=await self._listed_account(request),
            topic=request.query_params.get("topic"),
            callback=request.query_params.get("callback"),
        )
        items = [subscription_document(each) for each in found]
        return json_response(page_document("subscriptions", items, limit))

    async def show(self, request: Request) -> Response:
        report = await self._subscriptions.get(
            _subscription_id(request), account=_own_account(request)
        )
        return json_response(subscription_report_document(report))

    async def remove(self, request: Request) -> Response:
        ended = await self._subscriptions.remove(
            _subscription_id(request),
            tell=query_flag(request, "tell", True),
            account=_own_account(request),
        )
        return json_response(subscription_document(ended))

    async def _account(self, request: Request, name: str) -> AccountId:
        """Who subscribes. An administrator may name another account than its own."""
        principal = principal_of(request)
        if not name or name.lower() == principal.account.name:
            return principal.account.id
        require(principal, Right.ADMIN)
        return (await self._tokens.account("account", name)).id

    async def _listed_account(self, request: Request) -> AccountId | None:
        name = request.query_params.get("account", "")
        return await self._account(request, name) if name else _own_account(request)


def _subscription_id(request: Request) -> SubscriptionId:
    return SubscriptionId(path_id(request, "subscription"))


def _own_account(request: Request) -> AccountId | None:
    """The only account whose subscriptions are shown; None: all are."""
    principal = principal_of(request)
    return None if principal.is_admin else principal.account.id
