"""``/api/plans``: actions on many things, which are planned first, then carried out."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final, Self

from starlette.requests import Request
from starlette.responses import Response

from hub.runtime.clock import Clock
from hub.services.planned_actions import PlanService, UndeliveredCount
from hub.services.token_authentication import TokenService
from hub.web.api.selection_input import (
    DeliverySelection,
    FeedSelection,
    SubscriptionSelection,
    listed_account,
)
from hub.web.audited_requests import name_target
from hub.web.authentication import own_account, principal_of, require
from hub.web.json_output import JsonObject, Time, json_response
from hub.web.operation import PAGE, ApiOperation, Routes
from hub.web.request_input import RequestBody, path_id, query_page, read_body
from protocols.protocol_errors import InvalidValue
from storage.records import (
    AuditTarget,
    BulkPlan,
    FeedFilter,
    PlanAction,
    PlanFilter,
    PlanId,
    PlanKind,
    PlanState,
    SubscriptionFilter,
    TokenScope,
    UndeliveredFilter,
    UndeliveredOutcome,
)

_SCOPES: Final = {
    (PlanKind.SUBSCRIPTIONS, PlanAction.PAUSE): TokenScope.UNSUBSCRIBE,
    (PlanKind.SUBSCRIPTIONS, PlanAction.RESUME): TokenScope.SUBSCRIBE,
    (PlanKind.SUBSCRIPTIONS, PlanAction.REMOVE): TokenScope.UNSUBSCRIBE,
    (PlanKind.SUBSCRIPTIONS, PlanAction.RETRY): TokenScope.SUBSCRIBE,
}
"""Scopes that plans require, as the single operations do; all others require
`ADMIN`."""


class PlanToMake(RequestBody):
    """The body of ``POST /api/plans``: an action, and what it is for.

    That is one of ``feeds``, ``subscriptions`` and ``deliveries``; an empty object
    stands for all of them. ``category``: the one that the action `set_category` sets.
    """

    action: PlanAction
    feeds: FeedSelection | None = None
    subscriptions: SubscriptionSelection | None = None
    deliveries: DeliverySelection | None = None
    category: str | None = None


class PlannedItemJson(JsonObject):
    """One thing that a plan is for. ``note``: its state, or why the action failed.

    ``id``: that of the feed, subscription or dead letter; for a retrying subscription,
    that of the subscription. ``subscription``: the one that it is, or is of; null for a
    feed, and in plans made by former versions.
    """

    id: int
    name: str
    note: str
    subscription: int | None


class PlanFilterJson(JsonObject):
    """What a plan is for; a condition that is null does not count."""

    state: list[str] | None = None
    category: str | None = None
    topic: str | None = None
    callback: str | None = None
    feed: int | None = None
    account: int | None = None
    search: str | None = None
    status: str | None = None
    host: str | None = None
    format: str | None = None
    subscription: int | None = None
    since: Time | None = None
    within: Time | None = None
    until: Time | None = None
    ids: list[int] | None = None
    outcome: UndeliveredOutcome | None = None

    @classmethod
    def of_filter(cls, wanted: PlanFilter) -> Self:
        match wanted:
            case FeedFilter():
                return cls(
                    state=list(wanted.health) or None,
                    category=wanted.category,
                    search=wanted.text or None,
                    since=wanted.since,
                    within=wanted.after,
                    ids=list(wanted.ids) or None,
                    host=wanted.host or None,
                    format=wanted.format or None,
                )
            case SubscriptionFilter():
                return cls(
                    state=list(wanted.health) or None,
                    topic=wanted.topic,
                    callback=wanted.callback,
                    feed=wanted.feed_id,
                    account=wanted.account,
                    search=wanted.text or None,
                    since=wanted.since,
                    within=wanted.after,
                    ids=list(wanted.ids) or None,
                )
            case UndeliveredFilter():
                return cls(
                    status=_status(wanted.statuses),
                    host=wanted.host or None,
                    topic=wanted.topic,
                    subscription=wanted.subscription_id,
                    since=wanted.since,
                    until=wanted.until,
                    outcome=wanted.outcome,
                )


def _status(statuses: tuple[int, int] | None) -> str | None:
    """The statuses of a filter, written as in a request."""
    match statuses:
        case None:
            return None
        case (0, _):
            return "none"
        case (first, last):
            return f"{first}" if first == last else f"{first // 100}xx"


class BulkPlanJson(JsonObject):
    """A plan, and how far it is.

    ``count``: how many things were found when it was made; ``sample``: the first of
    them. ``done``, ``failed``: how many so far; ``failures``: the first that failed.
    ``left_out``: how many were not found any more; null until the plan is done. For
    ``retry``, ``done`` means made due: ``undelivered`` is how much callbacks have not
    accepted by now of what the filter finds in any state or outcome (of deliveries,
    what lacks a record of before the plan), counted up to 1,000, and
    ``more_undelivered``, whether it is or may be more: from a day after a plan, some of
    the failures by which its filter finds deliveries may no longer be kept. Null in
    lists, for other actions, and if it is no longer known.
    """

    id: int
    action: PlanAction
    kind: PlanKind
    filter: PlanFilterJson
    category: str | None
    count: int
    sample: list[PlannedItemJson]
    made_by: str
    state: PlanState
    created_at: Time
    expires_at: Time
    confirmed_at: Time | None
    finished_at: Time | None
    done: int
    failed: int
    left_out: int | None
    undelivered: int | None
    more_undelivered: bool
    failures: list[PlannedItemJson]

    @classmethod
    def of_plan(
        cls,
        plan: BulkPlan,
        state: PlanState,
        undelivered: UndeliveredCount | None = None,
    ) -> Self:
        progress = plan.progress
        is_done = state is PlanState.DONE
        left = max(0, plan.total - progress.done - progress.failed)
        takes_category = plan.action is PlanAction.SET_CATEGORY
        return cls.of(
            plan,
            state=state,
            filter=PlanFilterJson.of_filter(plan.wanted),
            category=plan.category if takes_category else None,
            count=plan.total,
            sample=[PlannedItemJson.of(each) for each in plan.sample],
            made_by=plan.account.name,
            done=progress.done,
            failed=progress.failed,
            left_out=left if is_done else None,
            undelivered=undelivered.count
            if undelivered and undelivered.is_known
            else None,
            more_undelivered=undelivered is not None
            and (undelivered.has_more or undelivered.is_least),
            failures=[PlannedItemJson.of(each) for each in progress.failures],
        )


class BulkPlansJson(JsonObject):
    """A page of plans; ``next`` is the ``after`` of the following one."""

    plans: list[BulkPlanJson]
    next: int | None


class PlanRoutes(Routes):
    tag = "plans"

    def __init__(
        self,
        plans: PlanService,
        tokens: TokenService,
        clock: Clock,
    ) -> None:
        self._plans = plans
        self._tokens = tokens
        self._clock = clock

    @ApiOperation(
        method="POST",
        path="/plans",
        id="make_plan",
        scope=TokenScope.LIST,
        summary="Plan an action on everything a filter finds",
        description="Nothing is done yet: the answer has their `count` and a `sample`."
        " 503 if 20 plans of the account run or wait to be confirmed. Also requires"
        " the scope of the single operation.",
        answers={201: BulkPlanJson},
        body=PlanToMake(action=PlanAction.PAUSE, feeds=FeedSelection(failing=True)),
        problems=(503,),
    )
    async def make(self, request: Request) -> Response:
        body = await read_body(request, PlanToMake)
        wanted = await self._filter(request, body)
        principal = principal_of(request)
        plan = await self._plans.make(
            principal.account, body.action, wanted, body.category
        )
        name_target(request, AuditTarget.PLAN, plan.id)
        return self._answer(plan, HTTPStatus.CREATED)

    async def _filter(self, request: Request, body: PlanToMake) -> PlanFilter:
        """The filter of a plan.

        Raises `InvalidValue`, and `Problem` if the token may not make such a plan.
        """
        principal, now = principal_of(request), self._clock.now()
        match body.feeds, body.subscriptions, body.deliveries:
            case FeedSelection() as feeds, None, None:
                require(principal, _scope(PlanKind.FEEDS, body.action))
                return feeds.filter(now)
            case None, SubscriptionSelection() as subscriptions, None:
                require(principal, _scope(PlanKind.SUBSCRIPTIONS, body.action))
                account = await listed_account(
                    request, self._tokens, subscriptions.account
                )
                return subscriptions.filter(now, account)
            case None, None, DeliverySelection() as deliveries:
                require(principal, _scope(PlanKind.DELIVERIES, body.action))
                return deliveries.filter(now)
        raise InvalidValue("feeds", "one of feeds, subscriptions and deliveries")

    @ApiOperation(
        method="GET",
        path="/plans",
        id="list_plans",
        scope=TokenScope.LIST,
        summary="List the account's plans, by page",
        description="With the scope `admin` those of all accounts.",
        answers={200: BulkPlansJson},
        query=PAGE,
        problems=(422,),
    )
    async def page(self, request: Request) -> Response:
        after, limit = query_page(request)
        found = await self._plans.page(
            after=PlanId(after), limit=limit, account=own_account(request)
        )
        now = self._clock.now()
        plans = [BulkPlanJson.of_plan(each, each.state_at(now)) for each in found.plans]
        return json_response(BulkPlansJson(plans=plans, next=found.next))

    @ApiOperation(
        method="GET",
        path="/plans/{id}",
        id="get_plan",
        scope=TokenScope.LIST,
        summary="Show one plan and its progress",
        answers={200: BulkPlanJson},
        problems=(404,),
    )
    async def show(self, request: Request) -> Response:
        plan = await self._plan(request)
        state = plan.state_at(self._clock.now())
        undelivered = await self._plans.undelivered(plan)
        return json_response(BulkPlanJson.of_plan(plan, state, undelivered))

    @ApiOperation(
        method="POST",
        path="/plans/{id}/confirm",
        id="confirm_plan",
        scope=TokenScope.LIST,
        summary="Carry out a plan",
        description="Once, and within an hour. 409 if it was confirmed before, was"
        " cancelled, or has expired. Also requires the scope of the single operation.",
        answers={200: BulkPlanJson},
        problems=(404, 409),
    )
    async def confirm(self, request: Request) -> Response:
        plan = await self._plan(request)
        require(principal_of(request), _scope(plan.kind, plan.action))
        return self._answer(await self._plans.confirm(plan))

    @ApiOperation(
        method="POST",
        path="/plans/{id}/cancel",
        id="cancel_plan",
        scope=TokenScope.LIST,
        summary="Cancel a plan; what is done stays done",
        description="Also one that is not confirmed. 409 if it is over.",
        answers={200: BulkPlanJson},
        problems=(404, 409),
    )
    async def cancel(self, request: Request) -> Response:
        return self._answer(await self._plans.cancel(await self._plan(request)))

    async def _plan(self, request: Request) -> BulkPlan:
        plan_id = PlanId(path_id(request, "plan"))
        return await self._plans.get(plan_id, own_account(request))

    def _answer(self, plan: BulkPlan, status: HTTPStatus = HTTPStatus.OK) -> Response:
        state = plan.state_at(self._clock.now())
        return json_response(BulkPlanJson.of_plan(plan, state), status)


def _scope(kind: PlanKind, action: PlanAction) -> TokenScope:
    return _SCOPES.get((kind, action), TokenScope.ADMIN)
