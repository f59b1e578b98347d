"""``/api/deliveries``: retrying subscriptions and dead letters."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Self

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from hub.runtime.clock import Clock
from hub.services.service_errors import Conflict
from hub.web.json_output import JsonObject, Time, former_name, json_response
from hub.web.operation import PAGE, ApiOperation, Parameter, Routes
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
    """The body of ``POST /api/deliveries/retry``: one of its members."""

    subscription: Id | None = None
    dead_letter: Id | None = None
    dead: Annotated[Id | None, former_name("dead_letter")] = None


class RetryingSubscriptionJson(JsonObject):
    """A subscription that did not take a notification, and is tried again."""

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
    def of_retrying(cls, retrying: RetryingSubscription) -> Self:
        subscription = retrying.subscription
        return cls.of(
            retrying,
            subscription=subscription.id,
            topic=subscription.topic,
            callback=subscription.callback,
            under_way=retrying.lease_id != 0,
        )


class DeadLetterJson(JsonObject):
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
    retrying: list[RetryingSubscriptionJson]
    dead_letters: list[DeadLetterJson]
    stragglers: Annotated[list[RetryingSubscriptionJson], former_name("retrying")]
    dead: Annotated[list[DeadLetterJson], former_name("dead_letters")]


class RetriedJson(JsonObject):
    """``due``: when it is tried."""

    due: str


def _former(name: str, *, of: str) -> Parameter:
    return replace(
        PAGE[0], name=name, help=f"former name of `{of}`", is_deprecated=True
    )


def _after(request: Request, name: str, former: str) -> int:
    """Behind which id the page begins, by either name of the parameter."""
    before = query_number(request, former, 0, LARGEST_ID)
    return query_number(request, name, before, LARGEST_ID)


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
        summary="Retrying subscriptions, and dead letters",
        answers={200: DeliveriesJson},
        query=(
            replace(PAGE[0], name="retrying_after", help="a subscription's id"),
            replace(PAGE[0], name="dead_letters_after", help="a dead letter's id"),
            PAGE[1],
            _former("stragglers_after", of="retrying_after"),
            _former("dead_after", of="dead_letters_after"),
        ),
        problems=(422,),
    )
    async def page(self, request: Request) -> Response:
        after = _after(request, "retrying_after", "stragglers_after")
        dead_after = _after(request, "dead_letters_after", "dead_after")
        limit = query_limit(request)
        late = await self._deliveries.retrying(after=SubscriptionId(after), limit=limit)
        dead = await self._deliveries.dead_letters(after=dead_after, limit=limit)
        retrying = [RetryingSubscriptionJson.of_retrying(each) for each in late]
        dead_letters = [
            DeadLetterJson.of(each, subscription=each.subscription_id) for each in dead
        ]
        return json_response(
            DeliveriesJson(
                retrying=retrying,
                dead_letters=dead_letters,
                stragglers=retrying,
                dead=dead_letters,
            )
        )

    @ApiOperation(
        method="POST",
        path="/deliveries/retry",
        id="retry_delivery",
        scope=TokenScope.ADMIN,
        summary="Try a retrying subscription, or a dead letter, now",
        answers={202: RetriedJson},
        body=Retry(subscription=7),
        problems=(404, 409),
    )
    async def retry(self, request: Request) -> Response:
        body = await read_body(request, Retry)
        match body:
            case Retry(subscription=int(subscription), dead_letter=None, dead=None):
                await self._deliveries.retry_now(
                    SubscriptionId(subscription), self._clock.now()
                )
            case (
                Retry(subscription=None, dead_letter=int(dead_letter), dead=None)
                | Retry(subscription=None, dead_letter=None, dead=int(dead_letter))
            ):
                await self._retry_dead_letter(dead_letter)
            case _:
                raise InvalidValue("subscription", "either subscription or dead_letter")
        return json_response(RetriedJson(due="now"), HTTPStatus.ACCEPTED)

    async def _retry_dead_letter(self, number: int) -> None:
        try:
            await self._deliveries.retry_dead_letter(number, self._clock.now())
        except StorageBusy as error:
            raise Conflict(
                "the subscription has another delivery under way; try again later"
            ) from error
