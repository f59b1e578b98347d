"""``/api/account``: the account of a token; ``/api/accounts``: all, for operators."""

from __future__ import annotations

from typing import Self

from starlette.requests import Request
from starlette.responses import Response

from hub.services.account_reports import (
    AccountActivity,
    AccountReport,
    AccountReportService,
)
from hub.web.authentication import principal_of
from hub.web.json_output import JsonObject, Time, json_response
from hub.web.operation import PAGE, ApiOperation, Parameter, Routes
from hub.web.request_input import query_limit
from storage.records import SubscriptionHealth, TokenScope


class AccountJson(JsonObject):
    """An account, as its own token sees it.

    ``scopes``: those of the token. ``notified``: requests to its callbacks so far.
    ``credits``: what ``X-Superfeedr-Credits`` counts down. ``subscriptions``: how many
    it has, and how many of them are ``failing``; null if they are too many to be
    counted.
    """

    account: str
    scopes: list[TokenScope]
    notified: int
    credits: int
    subscriptions: int | None
    failing: int | None

    @classmethod
    def of_report(cls, report: AccountReport) -> Self:
        return cls.of(
            report,
            account=report.account.name,
            scopes=sorted(report.scopes),
            subscriptions=report.total,
            failing=report.total_failing,
        )


class SubscriptionCountsJson(JsonObject):
    """How many subscriptions are in each state."""

    ok: int
    slow: int
    failing: int
    paused: int
    pending: int
    gone: int
    ended: int


class AccountActivityJson(JsonObject):
    """An account, as operators see it.

    ``tokens``: how many valid ones it has; ``scopes``: all that these may do;
    ``used_at``: when one was last used. ``notified``: requests to its callbacks so far.
    ``credits``: what ``X-Superfeedr-Credits`` counts down. ``live_connections``: how
    many are open.
    """

    account: str
    tokens: int
    scopes: list[TokenScope]
    used_at: Time | None
    subscriptions: SubscriptionCountsJson
    notified: int
    credits: int
    live_connections: int

    @classmethod
    def of_activity(cls, found: AccountActivity) -> Self:
        counts = found.summary.subscriptions
        return cls.of(
            found,
            account=found.summary.account.name,
            tokens=found.summary.tokens,
            scopes=sorted(found.summary.scopes),
            used_at=found.summary.used_at,
            subscriptions=SubscriptionCountsJson(
                **{each.value: counts.get(each, 0) for each in SubscriptionHealth}
            ),
            live_connections=found.connections,
        )


class AccountsJson(JsonObject):
    """A page of accounts; ``next`` is the ``after`` of the following one."""

    accounts: list[AccountActivityJson]
    next: str | None


class AccountRoutes(Routes):
    tag = "account"

    def __init__(self, reports: AccountReportService) -> None:
        self._reports = reports

    @ApiOperation(
        method="GET",
        path="/account",
        id="get_account",
        scope=TokenScope.LIST,
        summary="Show the token's account: its scopes, credits and subscriptions",
        description="The answer has `account` (its name), `scopes` (of the token),"
        " `notified` (requests to its callbacks so far), `credits`"
        " (`X-Superfeedr-Credits`), and how many `subscriptions` it has and how many"
        " of them are `failing`, null if they are too many to be counted.",
        answers={200: AccountJson},
    )
    async def show(self, request: Request) -> Response:
        report = await self._reports.get(principal_of(request))
        return json_response(AccountJson.of_report(report))

    @ApiOperation(
        method="GET",
        path="/accounts",
        id="list_accounts",
        scope=TokenScope.ADMIN,
        summary="List accounts with their tokens' scopes, subscriptions and credits",
        description="By name: how many good `tokens` each has, all `scopes` of these,"
        " when one was last used (`used_at`), `subscriptions` by state, `notified`,"
        " `credits`, `live_connections`. `anonymous` is the open hub's.",
        answers={200: AccountsJson},
        query=(
            Parameter(name="search", help="only those whose name begins so"),
            Parameter(name="after", help="the page after this name"),
            PAGE[1],
        ),
        problems=(422,),
    )
    async def page(self, request: Request) -> Response:
        query, limit = request.query_params, query_limit(request)
        found = await self._reports.page(
            prefix=query.get("search", "").lower(),
            after=query.get("after", ""),
            limit=limit,
        )
        return json_response(
            AccountsJson(
                accounts=[AccountActivityJson.of_activity(each) for each in found],
                next=found[-1].summary.account.name if len(found) == limit else None,
            )
        )

    @ApiOperation(
        method="GET",
        path="/accounts/{name}",
        id="get_account_by_name",
        scope=TokenScope.ADMIN,
        summary="Show one account, as the list of all does",
        answers={200: AccountActivityJson},
        problems=(404,),
    )
    async def show_named(self, request: Request) -> Response:
        found = await self._reports.find(request.path_params["name"])
        return json_response(AccountActivityJson.of_activity(found))
