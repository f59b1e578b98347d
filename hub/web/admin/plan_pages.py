"""``/admin/plans``: actions on many things, which are planned, confirmed, watched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Final, TypeVar
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from hub.runtime.clock import Clock
from hub.services.planned_actions import LACKING, PlanService
from hub.services.token_authentication import TokenService
from hub.web.admin.page_access import (
    OperatorPages,
    PageAccess,
    redirect,
    viewer_of,
    without_blanks,
)
from hub.web.api.plan_routes import PlanFilterJson
from hub.web.api.selection_input import (
    query_deliveries,
    query_feeds,
    query_subscriptions,
)
from hub.web.audited_requests import name_target
from hub.web.operation import HTML, Operation
from hub.web.page_rendering import render_page
from hub.web.problems import Problem
from hub.web.request_input import LARGEST_ID, path_id, query_choice
from protocols.protocol_errors import InvalidValue
from storage.records import (
    KIND_OF_FILTER,
    AccountId,
    AuditTarget,
    BulkPlan,
    PlanAction,
    PlanFilter,
    PlanId,
    PlanKind,
    UndeliveredFilter,
    UndeliveredOutcome,
)

Choice = TypeVar("Choice", PlanAction, PlanKind)

SHOWN: Final = 50
"""Plans on a page."""
OF_NOTICES: Final = frozenset({"done", "of", "at", "first", "last"})
"""Parameters that say what was done: to which records of which subscription, when."""
_OF_THE_PAGE: Final = OF_NOTICES | {"cursor", "after", "before", "limit", "sort"}
"""Parameters of a list that do not say which rows are meant."""


def filter_of(asked: Request) -> str:
    """The part of a list's query that says which rows are meant."""
    given = asked.query_params.multi_items()
    return urlencode([each for each in given if each[0] not in _OF_THE_PAGE])


class PlanPages(OperatorPages):
    def __init__(
        self,
        access: PageAccess,
        plans: PlanService,
        tokens: TokenService,
        clock: Clock,
    ) -> None:
        super().__init__(access)
        self._plans = plans
        self._tokens = tokens
        self._clock = clock

    @Operation(
        method="GET",
        path="/admin/plans",
        id="get_plans_page",
        summary="The last plans: what was done to many at once",
        answers={200: {HTML: str}, 303: None},
        problems=(403, 429, 503),
    )
    async def page(self, request: Request) -> Response:
        now = self._clock.now()
        plans = await self._plans.latest(SHOWN)
        return render_page(
            "plans.html",
            section="Plans",
            viewer=viewer_of(request),
            now=now,
            plans=[(each, described(each), each.state_at(now)) for each in plans],
        )

    @Operation(
        method="POST",
        path="/admin/plans",
        id="make_plan_of_page",
        summary="Plan an action on chosen rows of a list, or on all that match",
        answers={303: None},
        problems=(403, 404, 422, 429, 503),
    )
    async def make(self, request: Request) -> Response:
        form, account = viewer_of(request).form, viewer_of(request).principal.account
        action = _choice(PlanAction, form.get("action", ""), "action")
        wanted = await self._filter(request)
        takes_category = action is PlanAction.SET_CATEGORY
        category = form.get("new_category", "").strip() if takes_category else None
        plan = await self._plans.make(account, action, wanted, category)
        name_target(request, AuditTarget.PLAN, plan.id)
        return _to(plan)

    async def _filter(self, request: Request) -> PlanFilter:
        """The filter of the list that the form was on, or the rows that were chosen.

        Raises `InvalidValue` and `NotFound`.
        """
        form, now = viewer_of(request).form, self._clock.now()
        kind = _choice(PlanKind, form.get("kind", ""), "kind")
        ids = _ids(form.getlist("id")) if form.get("which") == "chosen" else None
        listed = form.get("filter", "") if ids is None else ""
        query = {**request.scope, "query_string": listed.encode()}
        asked = without_blanks(Request(query))
        match kind:
            case PlanKind.FEEDS:
                feeds = query_feeds(asked)
                feeds.ids = ids
                return feeds.filter(now)
            case PlanKind.SUBSCRIPTIONS:
                subscriptions = query_subscriptions(asked)
                subscriptions.ids = ids
                account = await self._named(subscriptions.account)
                return subscriptions.filter(now, account)
            case PlanKind.DELIVERIES:
                deliveries = query_deliveries(asked)
                deliveries.outcome = query_choice(asked, "outcome", UndeliveredOutcome)
                return deliveries.filter(now)

    async def _named(self, account: str) -> AccountId | None:
        if not account:
            return None
        return (await self._tokens.account("account", account)).id

    @Operation(
        method="GET",
        path="/admin/plans/{id}",
        id="get_plan_page",
        summary="A plan: to be confirmed, under way, or what came of it",
        answers={200: {HTML: str}, 303: None},
        problems=(403, 404, 429, 503),
    )
    async def show(self, request: Request) -> Response:
        plan, now = await self._plan(request), self._clock.now()
        state = plan.state_at(now)
        progress = plan.progress
        conditions = await self._conditions(plan.wanted)
        return render_page(
            "plan.html",
            section=plan.kind.capitalize(),
            viewer=viewer_of(request),
            now=now,
            plan=plan,
            what=described(plan),
            state=state,
            left=max(0, plan.total - progress.done - progress.failed),
            conditions=conditions,
            place=_PLACES[plan.kind],
            is_final=plan.action in _FINAL,
            effect=_EFFECTS.get((plan.kind, plan.action), ""),
            undelivered=await self._plans.undelivered(plan),
            conditions_now=await self._plans.conditions_now(plan),
            lacking_list=_lacking_list(plan.wanted, conditions),
        )

    @Operation(
        method="POST",
        path="/admin/plans/{id}/confirm",
        id="confirm_plan_of_page",
        summary="Carry out a plan",
        answers={303: None},
        problems=(403, 404, 409, 429, 503),
    )
    async def confirm(self, request: Request) -> Response:
        return _to(await self._plans.confirm(await self._plan(request)))

    @Operation(
        method="POST",
        path="/admin/plans/{id}/cancel",
        id="cancel_plan_of_page",
        summary="Stop a plan, or drop one that is not confirmed",
        answers={303: None},
        problems=(403, 404, 409, 429, 503),
    )
    async def cancel(self, request: Request) -> Response:
        return _to(await self._plans.cancel(await self._plan(request)))

    async def _conditions(self, wanted: PlanFilter) -> list[tuple[str, object]]:
        """The conditions of a plan's filter, by the names of the list's parameters."""
        found = PlanFilterJson.of_filter(wanted)
        given = {name: getattr(found, name) for name in found.__struct_fields__}
        if account := given["account"]:
            names = await self._tokens.names([AccountId(account)])
            given["account"] = names.get(AccountId(account), account)
        return [
            (name, ", ".join(map(str, each)) if isinstance(each, list) else each)
            for name, each in given.items()
            if each is not None
        ]

    async def _plan(self, request: Request) -> BulkPlan:
        return await self._plans.get(PlanId(path_id(request, "plan")))


def _to(plan: BulkPlan) -> Response:
    return redirect(f"/admin/plans/{plan.id}")


# --- what is asked for ---


def _choice(kind: type[Choice], value: str, field: str) -> Choice:
    try:
        return kind(value)
    except ValueError:
        raise InvalidValue(field, f"one of {', '.join(kind)}", value) from None


def _ids(chosen: list[str]) -> list[int]:
    """The ids that were chosen. Raises `Problem` and `InvalidValue`."""
    if not chosen:
        raise Problem(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            "no row was chosen: go back and tick some, or plan it for all that match",
        )
    if not all(each.isascii() and each.isdigit() for each in chosen):
        raise InvalidValue("id", "numbers of rows", chosen[0])
    return [min(int(each), LARGEST_ID) for each in chosen]


# --- in words ---

_DEEDS: Final[Mapping[PlanAction, str]] = {
    PlanAction.PAUSE: "Pause",
    PlanAction.RESUME: "Resume",
    PlanAction.REMOVE: "Remove",
    PlanAction.FETCH: "Fetch",
    PlanAction.SET_CATEGORY: "Set the category of",
    PlanAction.RETRY: "Send again",
    PlanAction.DISCARD: "Discard",
}
_ONE: Final[Mapping[PlanKind, str]] = {
    PlanKind.FEEDS: "feed",
    PlanKind.SUBSCRIPTIONS: "subscription",
    PlanKind.DELIVERIES: "dead letter or retrying subscription",
}
_MANY: Final[Mapping[PlanKind, str]] = {
    PlanKind.FEEDS: "feeds",
    PlanKind.SUBSCRIPTIONS: "subscriptions",
    PlanKind.DELIVERIES: "dead letters and retrying subscriptions",
}
_PLACES: Final[Mapping[PlanKind, str]] = {
    PlanKind.FEEDS: "/admin/feeds",
    PlanKind.SUBSCRIPTIONS: "/admin/subscriptions",
    PlanKind.DELIVERIES: "/admin/deliveries",
}
_FINAL: Final = frozenset({PlanAction.REMOVE, PlanAction.DISCARD})
_EFFECTS: Final[Mapping[tuple[PlanKind, PlanAction], str]] = {
    (PlanKind.FEEDS, PlanAction.REMOVE): "Their subscriptions end with them.",
    (PlanKind.FEEDS, PlanAction.PAUSE): "They are not polled until they are resumed.",
    (PlanKind.SUBSCRIPTIONS, PlanAction.PAUSE): "Nothing is sent to their callbacks"
    " until they are resumed; what comes is kept.",
    (PlanKind.SUBSCRIPTIONS, PlanAction.REMOVE): "Their callbacks are told, and"
    " subscribers have to subscribe again.",
    (PlanKind.SUBSCRIPTIONS, PlanAction.RETRY): "Those that wait for their next try"
    " are tried now; one that waits for nothing counts as failed.",
    (PlanKind.DELIVERIES, PlanAction.RETRY): "Dead letters are sent after all, and"
    " retrying subscriptions are tried now.",
    (PlanKind.DELIVERIES, PlanAction.DISCARD): "Dead letters are dropped, and retrying"
    " subscriptions go on with what comes from now on.",
}


def described(plan: BulkPlan) -> str:
    """The plan in words: ``Pause 1,234 feeds``."""
    is_ending = plan.kind is PlanKind.SUBSCRIPTIONS and plan.action is PlanAction.REMOVE
    is_tried = plan.kind is PlanKind.SUBSCRIPTIONS and plan.action is PlanAction.RETRY
    deed = "End" if is_ending else "Retry" if is_tried else _DEEDS[plan.action]
    which = (_ONE if plan.total == 1 else _MANY)[plan.kind]
    words = f"{deed} {plan.total:,} {which}"
    if plan.action is PlanAction.SET_CATEGORY:
        words += f" to {plan.category}" if plan.category else " to none"
    return words


def _lacking_list(wanted: PlanFilter, conditions: Sequence[tuple[str, object]]) -> str:
    """The path of the list of what `PlanService.undelivered` counts; "" if that is of
    ticked rows, which no list finds."""
    place = _PLACES[KIND_OF_FILTER[type(wanted)]]
    if isinstance(wanted, UndeliveredFilter):
        left_aside, health = {"outcome"}, list[tuple[str, object]]()
    else:
        left_aside = {"state", "since", "within"}
        health = [("state", each.value) for each in LACKING]
    kept = [
        (name, each.isoformat() if isinstance(each, datetime) else each)
        for name, each in conditions
        if name not in left_aside
    ]
    is_of_ids = any(name == "ids" for name, _ in kept)
    return "" if is_of_ids else f"{place}?{urlencode([*kept, *health])}"
