"""``/api/account``: what the account of a token is told of itself."""

from __future__ import annotations

from typing import Self

from starlette.requests import Request
from starlette.responses import Response

from hub.services.account_reports import AccountReport, AccountReportService
from hub.web.authentication import principal_of
from hub.web.json_output import JsonObject, json_response
from hub.web.operation import ApiOperation, Routes
from storage.records import TokenScope


class AccountJson(JsonObject):
    """An account. ``scopes`` are those of the token that asks; ``notified``: requests
    to its callbacks so far; ``credits``: what ``X-Superfeedr-Credits`` counts down.

    ``subscriptions``, and those that are ``failing``; null: too many to be counted.
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
        answers={200: AccountJson},
    )
    async def show(self, request: Request) -> Response:
        report = await self._reports.get(principal_of(request))
        return json_response(AccountJson.of_report(report))
