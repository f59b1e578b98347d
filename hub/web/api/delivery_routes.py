"""``/api/deliveries``: what is late or was given up, and trying it again."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Self

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from hub.runtime.clock import Clock
from hub.services.service_errors import Conflict
from hub.web.json_output import JsonObject, Time, json_response
from hub.web.operation import PAGE, ApiOperation, Routes
from hub.web.request_input import (
    LARGEST_ID,
    RequestBody,
    query_limit,
    query_number,
    read_body,
)
from protocols.protocol_errors import InvalidValue
from storage.contract import DeliveryStore
from storage.errors import StorageBusy
from storage.records import RetryingSubscription, SubscriptionId, TokenScope

Id = Annotated[int, msgspec.Meta(ge=1, le=LARGEST_ID)]


class Retry(RequestBody):
    """The body of ``POST /api/deliveries/retry``: one of the two."""

    subscription: Id | None = None
    dead: Id | None = None


class StragglerJson(JsonObject):
    """A subscription that is late, and is tried again."""

    subscription: int
    topic: str
    callback: str
    position: int
    attempts: int
    next_try: Time
    under_way: bool
    failing_since: Time
    last_status: int
    last_error: str

    @classmethod
    def of_straggler(cls, straggler: RetryingSubscription) -> Self:
        subscription = straggler.subscription
        return cls.of(
            straggler,
            subscription=subscription.id,
            topic=subscription.topic,
            callback=subscription.callback,
            under_way=straggler.lease_id != 0,
        )


class DeadRangeJson(JsonObject):
    """Records ``first`` to ``last`` that a subscription did not get, and why."""

    id: int
    subscription: int
    topic: str
    callback: str
    first: int
    last: int
    reason: str
    at: Time


class DeliveriesJson(JsonObject):
    stragglers: list[StragglerJson]
    dead: list[DeadRangeJson]


class RetriedJson(JsonObject):
    """``due``: when it is tried."""

    due: str


class DeliveryRoutes(Routes):
    tag = "deliveries"

    def __init__(self, deliveries: DeliveryStore, clock: Clock) -> None:
        self._deliveries = deliveries
        self._clock = clock

    @ApiOperation(
        method="GET",
        path="/deliveries",
        id="list_deliveries",
        scope=TokenScope.ADMIN,
        summary="What is late, and what was given up",
        answers={200: DeliveriesJson},
        query=(
            replace(PAGE[0], name="stragglers_after", help="a subscription's id"),
            replace(PAGE[0], name="dead_after", help="a dead range's id"),
            PAGE[1],
        ),
        problems=(422,),
    )
    async def page(self, request: Request) -> Response:
        after = query_number(request, "stragglers_after", 0, LARGEST_ID)
        dead_after = query_number(request, "dead_after", 0, LARGEST_ID)
        limit = query_limit(request)
        stragglers = await self._deliveries.retrying(
            after=SubscriptionId(after), limit=limit
        )
        dead = await self._deliveries.dead_letters(after=dead_after, limit=limit)
        return json_response(
            DeliveriesJson(
                stragglers=[StragglerJson.of_straggler(each) for each in stragglers],
                dead=[
                    DeadRangeJson.of(each, subscription=each.subscription_id)
                    for each in dead
                ],
            )
        )

    @ApiOperation(
        method="POST",
        path="/deliveries/retry",
        id="retry_delivery",
        scope=TokenScope.ADMIN,
        summary="Try a late subscription, or a dead range, now",
        answers={202: RetriedJson},
        body=Retry(subscription=7),
        problems=(404, 409),
    )
    async def retry(self, request: Request) -> Response:
        body = await read_body(request, Retry)
        match body:
            case Retry(subscription=int(subscription), dead=None):
                await self._deliveries.retry_now(
                    SubscriptionId(subscription), self._clock.now()
                )
            case Retry(subscription=None, dead=int(dead)):
                await self._retry_dead(dead)
            case _:
                raise InvalidValue("subscription", "either subscription or dead")
        return json_response(RetriedJson(due="now"), HTTPStatus.ACCEPTED)

    async def _retry_dead(self, dead_id: int) -> None:
        try:
            await self._deliveries.replay_dead_letter(dead_id, self._clock.now())
        except StorageBusy as error:
            raise Conflict(
                "the subscription has another delivery under way; try again later"
            ) from error
