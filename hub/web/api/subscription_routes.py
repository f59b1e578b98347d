"""``/api/subscriptions``: who is told of what."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any, Self

from starlette.requests import Request
from starlette.responses import Response

from hub.services.account_subscriptions import (
    SubscriptionReport,
    SubscriptionRequest,
    SubscriptionService,
)
from hub.services.callback_trials import CallbackTrialService
from hub.services.feed_reports import FeedReportService
from hub.services.token_authentication import TokenService
from hub.web.api.attempt_json import AttemptJson, TrialDeliveryJson
from hub.web.api.delivery_routes import RetryingSubscriptionJson
from hub.web.api.feed_json import PlannedFeedJson
from hub.web.authentication import own_account, principal_of, require
from hub.web.json_output import (
    JsonObject,
    Time,
    former_name,
    json_response,
    named_schema,
    next_after,
)
from hub.web.operation import PAGE, ApiOperation, Parameter, Routes
from hub.web.request_input import (
    RequestBody,
    path_id,
    query_flag,
    query_page,
    read_body,
)
from storage.contract import Storage
from storage.records import (
    AccountId,
    Format,
    Subscription,
    SubscriptionId,
    SubscriptionState,
    TokenScope,
    Updates,
)


class SubscriptionToAdd(RequestBody):
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


class SubscriptionJson(JsonObject):
    """What a callback is told of, and how."""

    id: int
    callback: str
    topic: str
    feed: int
    state: SubscriptionState
    format: Format
    updates: Updates
    batch: bool
    algorithm: Annotated[str, named_schema("Algorithm")]
    has_secret: bool
    former_secret_until: Time | None
    created_at: Time
    lease_end: Time | None
    from_position: int
    exhausted: bool
    ended_reason: str

    @classmethod
    def of_subscription(cls, subscription: Subscription, **more: Any) -> Self:
        return cls.of(
            subscription,
            feed=subscription.feed_id,
            has_secret=bool(subscription.secret),
            former_secret_until=subscription.former_until,
            **more,
        )


class SubscribedJson(SubscriptionJson):
    """A subscription, how its topic's feed is, and when that is fetched next."""

    feed_status: PlannedFeedJson


class SubscriptionReportJson(SubscriptionJson):
    """A subscription with its last attempts."""

    retrying: RetryingSubscriptionJson | None
    attempts: list[AttemptJson]
    straggler: Annotated[RetryingSubscriptionJson | None, former_name("retrying")]

    @classmethod
    def of_report(cls, report: SubscriptionReport) -> Self:
        found = report.retrying
        retrying = found and RetryingSubscriptionJson.of_retrying(found)
        return cls.of_subscription(
            report.subscription,
            retrying=retrying,
            straggler=retrying,
            attempts=[AttemptJson.of_attempt(each) for each in report.attempts],
        )


class SubscriptionsJson(JsonObject):
    """A page of subscriptions; ``next`` is the ``after`` of the following one."""

    subscriptions: list[SubscriptionJson]
    next: int | None


class SubscriptionRoutes(Routes):
    tag = "subscriptions"

    def __init__(
        self,
        subscriptions: SubscriptionService,
        reports: FeedReportService,
        trials: CallbackTrialService,
        tokens: TokenService,
        storage: Storage,
    ) -> None:
        self._storage = storage
        self._reports = reports
        self._subscriptions = subscriptions
        self._trials = trials
        self._tokens = tokens

    @ApiOperation(
        method="GET",
        path="/subscriptions",
        id="list_subscriptions",
        scope=TokenScope.LIST,
        summary="The account's subscriptions, a page of them",
        answers={200: SubscriptionsJson},
        query=(
            *PAGE,
            Parameter(name="topic", help="only those to this topic"),
            Parameter(name="callback", help="only those of this callback"),
            Parameter(name="account", help="only those of this account, by its name"),
        ),
        problems=(422,),
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
        return json_response(
            SubscriptionsJson(
                subscriptions=[
                    SubscriptionJson.of_subscription(each) for each in found
                ],
                next=next_after([each.id for each in found], limit),
            )
        )

    @ApiOperation(
        method="POST",
        path="/subscriptions",
        id="subscribe",
        scope=TokenScope.SUBSCRIBE,
        summary="Subscribe a callback, or change how it is subscribed",
        answers={201: SubscribedJson, 200: SubscribedJson},
        body=SubscriptionToAdd(
            callback="https://you.example/hook", topic="https://example.org/feed.xml"
        ),
    )
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
        status = PlannedFeedJson.of_feed(
            result.feed, next_fetch_reason=await self._reports.reason(result.feed)
        )
        return json_response(
            SubscribedJson.of_subscription(result.subscription, feed_status=status),
            HTTPStatus.CREATED if result.is_new else HTTPStatus.OK,
        )

    @ApiOperation(
        method="GET",
        path="/subscriptions/{id}",
        id="get_subscription",
        scope=TokenScope.LIST,
        summary="One subscription with its last attempts",
        answers={200: SubscriptionReportJson},
        problems=(404,),
    )
    async def show(self, request: Request) -> Response:
        report = await self._subscriptions.get(
            _subscription_id(request), account=own_account(request)
        )
        return json_response(SubscriptionReportJson.of_report(report))

    @ApiOperation(
        method="POST",
        path="/subscriptions/{id}/test",
        id="test_subscription",
        scope=TokenScope.ADMIN,
        summary="Send its callback one notification, marked as a test",
        description="The answer says what the callback answered. The subscription stays"
        " as it is, whatever that was.",
        answers={200: TrialDeliveryJson},
        problems=(404, 409, 422, 503),
    )
    async def test(self, request: Request) -> Response:
        trial = await self._trials.try_subscription(_subscription_id(request))
        return json_response(TrialDeliveryJson.of_trial(trial))

    @ApiOperation(
        method="DELETE",
        path="/subscriptions/{id}",
        id="unsubscribe",
        scope=TokenScope.UNSUBSCRIBE,
        summary="End a subscription",
        answers={200: SubscriptionJson},
        query=(
            Parameter(
                name="tell",
                help="whether the callback is sent a denial",
                kind="boolean",
                default=True,
            ),
        ),
        problems=(404, 422),
    )
    async def remove(self, request: Request) -> Response:
        ended = await self._subscriptions.remove(
            _subscription_id(request),
            tell=query_flag(request, "tell", True),
            account=own_account(request),
        )
        return json_response(SubscriptionJson.of_subscription(ended))

    async def _account(self, request: Request, name: str) -> AccountId:
        """Who subscribes. An administrator may name another account than its own."""
        principal = principal_of(request)
        if not name or name.lower() == principal.account.name:
            return principal.account.id
        require(principal, TokenScope.ADMIN)
        return (await self._tokens.account("account", name)).id

    async def _listed_account(self, request: Request) -> AccountId | None:
        name = request.query_params.get("account", "")
        return await self._account(request, name) if name else own_account(request)


def _subscription_id(request: Request) -> SubscriptionId:
    return SubscriptionId(path_id(request, "subscription"))
