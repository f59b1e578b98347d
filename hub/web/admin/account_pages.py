"""``/admin/accounts``: the accounts, with their tokens and subscriptions."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from hub.runtime.clock import Clock
from hub.services import AccountReportService, TokenService
from hub.web.admin.page_access import (
    OperatorPages,
    PageAccess,
    viewer_of,
    without_blanks,
)
from hub.web.admin.token_pages import SCOPES_IN_WORDS
from hub.web.operation import HTML, Operation, Parameter
from hub.web.page_rendering import render_page
from storage.records import (
    ANONYMOUS,
    OPERATOR,
    SubscriptionHealth,
    TokenFilter,
    TokenId,
)

ROWS: Final = 50
"""Accounts on a page."""
SHOWN_TOKENS: Final = 50


class AccountPages(OperatorPages):
    def __init__(
        self,
        access: PageAccess,
        reports: AccountReportService,
        tokens: TokenService,
        clock: Clock,
    ) -> None:
        super().__init__(access)
        self._reports = reports
        self._tokens = tokens
        self._clock = clock

    @Operation(
        method="GET",
        path="/admin/accounts",
        id="get_accounts_page",
        summary="The accounts: their tokens, subscriptions and credits",
        answers={200: {HTML: str}, 303: None},
        query=(
            Parameter(name="search", help="only those whose name begins so"),
            Parameter(name="after", help="the page after this name"),
        ),
        problems=(403, 429, 503),
    )
    async def page(self, request: Request) -> Response:
        query = without_blanks(request).query_params
        search, after = query.get("search", "").strip(), query.get("after", "")
        found = await self._reports.page(prefix=search.lower(), after=after, limit=ROWS)
        return render_page(
            "accounts.html",
            section="Accounts",
            viewer=viewer_of(request),
            now=self._clock.now(),
            rows=found,
            next=found[-1].summary.account.name if len(found) == ROWS else None,
            is_first=not after,
            search=search,
            states=tuple(SubscriptionHealth),
            open_hub=ANONYMOUS,
            operator=OPERATOR,
        )

    @Operation(
        method="GET",
        path="/admin/accounts/{name}",
        id="get_account_page",
        summary="One account: its subscriptions by state, its credits, its tokens",
        answers={200: {HTML: str}, 303: None},
        problems=(403, 404, 429, 503),
    )
    async def show(self, request: Request) -> Response:
        found = await self._reports.find(request.path_params["name"])
        account = found.summary.account
        tokens = await self._tokens.page(
            TokenFilter(account=account.id), after=TokenId(0), limit=SHOWN_TOKENS
        )
        return render_page(
            "operator_account.html",
            section="Accounts",
            viewer=viewer_of(request),
            now=self._clock.now(),
            found=found,
            account=account,
            tokens=tokens.tokens,
            has_more=tokens.next is not None,
            scopes=SCOPES_IN_WORDS,
            states=tuple(SubscriptionHealth),
            is_open_hub=account.id == ANONYMOUS,
            is_operator=account.id == OPERATOR,
        )
