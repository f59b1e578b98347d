"""``/account``: the portal of subscribers.

It shows what an account may do, how its subscriptions are, and what it tracks. Its
other pages are the operator's (`hub.web.admin.page_access.in_both_areas`).
"""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from hub.runtime.clock import Clock
from hub.services import AccountReportService, SelectedSubscriptionService
from hub.web.admin.page_access import (
    OperatorPages,
    PageAccess,
    own_account,
    viewer_of,
    without_blanks,
)
from hub.web.admin.token_pages import SCOPES_IN_WORDS
from hub.web.api.selection_input import cursor_of, query_order
from hub.web.operation import HTML, Operation, Parameter
from hub.web.page_rendering import render_page
from storage.records import (
    SubscriptionSort,
    TokenScope,
)

ROWS: Final = 50
"""Rows on a page."""


class OwnAccountPages(OperatorPages):
    def __init__(
        self,
        access: PageAccess,
        reports: AccountReportService,
        subscriptions: SelectedSubscriptionService,
        clock: Clock,
    ) -> None:
        super().__init__(access)
        self._reports = reports
        self._subscriptions = subscriptions
        self._clock = clock

    @Operation(
        method="GET",
        path="/account",
        id="get_own_account_page",
        summary="An account: its failing subscriptions, credits, and what it may do",
        answers={200: {HTML: str}, 303: None},
        problems=(403, 429, 503),
    )
    async def show(self, request: Request) -> Response:
        own_account(request, TokenScope.LIST)
        viewer = viewer_of(request)
        return render_page(
            "account.html",
            section="Account",
            viewer=viewer,
            now=self._clock.now(),
            report=await self._reports.get(viewer.principal),
            scopes=SCOPES_IN_WORDS,
        )

    @Operation(
        method="GET",
        path="/account/tracking",
        id="get_own_tracking_page",
        summary="The track queries that an account is subscribed to",
        answers={200: {HTML: str}, 303: None},
        query=(Parameter(name="cursor", help="cursor of the page before"),),
        problems=(403, 422, 429, 503),
    )
    async def tracking(self, request: Request) -> Response:
        account = own_account(request, TokenScope.LIST)
        _, after = query_order(without_blanks(request), SubscriptionSort.ID)
        page = await self._subscriptions.tracked(account, after=after, limit=ROWS)
        return render_page(
            "tracking.html",
            section="Tracking",
            viewer=viewer_of(request),
            now=self._clock.now(),
            rows=page.queries,
            next=cursor_of(page.next),
            is_first=after is None,
        )
