"""``/api/deliveries``: what is late or was given up, and trying it again."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hub.runtime.clock import Clock
from hub.services.errors import Conflict
from hub.web.decoding import (
    LARGEST_ID,
    Document,
    query_limit,
    query_number,
    read_body,
)
from hub.web.encoding import dead_document, json_response, straggler_document
from protocols.errors import InvalidValue
from storage.errors import StorageBusy
from storage.interface import DeliveryStore
from storage.records import SubscriptionId

Id = Annotated[int, msgspec.Meta(ge=1, le=LARGEST_ID)]


class Retry(Document):
    """The body of ``POST /api/deliveries/retry``: one of the two."""

    subscription: Id | None = None
    dead: Id | None = None


class DeliveryRoutes:
    def __init__(self, deliveries: DeliveryStore, clock: Clock) -> None:
        self._deliveries = deliveries
        self._clock = clock

    def routes(self) -> list[Route]:
        return [
            Route("/deliveries", self.page, methods=["GET"]),
            Route("/deliveries/retry", self.retry, methods=["POST"]),
        ]

    async def page(self, request: Request) -> Response:
        after = query_number(request, "stragglers_after", 0, LARGEST_ID)
        dead_after = query_number(request, "dead_after", 0, LARGEST_ID)
        limit = query_limit(request)
        stragglers = await self._deliveries.stragglers(
            after=SubscriptionId(after), limit=limit
        )
        dead = await self._deliveries.dead(after=dead_after, limit=limit)
        return json_response(
            {
                "stragglers": [straggler_document(each) for each in stragglers],
                "dead": [dead_document(each) for each in dead],
            }
        )

    async def retry(self, request: Request) -> Response:
        body = await read_body(request, Retry)
        match body:
            case Retry(subscription=int(subscription), dead=None):
                await self._deliveries.retry_straggler(
                    SubscriptionId(subscription), self._clock.now()
                )
            case Retry(subscription=None, dead=int(dead)):
                await self._retry_dead(dead)
            case _:
                raise InvalidValue("subscription", "either subscription or dead")
        return json_response({"due": "now"}, HTTPStatus.ACCEPTED)

    async def _retry_dead(self, dead_id: int) -> None:
        try:
            await self._deliveries.retry_dead(dead_id, self._clock.now())
        except StorageBusy as error:
            raise Conflict(
                "the subscription has another delivery under way; try again later"
            ) from error
