"""``/admin/hubs``: other people's hubs, and how well each pushes the feeds that name
it."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from hub.runtime.clock import Clock
from hub.services import PushHubReportService
from hub.web.admin.page_access import OperatorPages, PageAccess, viewer_of
from hub.web.operation import HTML, Operation
from hub.web.page_rendering import render_page

SHOWN_HUBS: Final = 100
"""Hubs on the page: those with the most subscriptions."""


class PushHubPages(OperatorPages):
    def __init__(
        self, access: PageAccess, reports: PushHubReportService, clock: Clock
    ) -> None:
        super().__init__(access)
        self._reports = reports
        self._clock = clock

    @Operation(
        method="GET",
        path="/admin/hubs",
        id="get_hubs_page",
        summary="Other people's hubs: how many entries each brought first, or missed",
        answers={200: {HTML: str}, 303: None},
        problems=(403, 429, 503),
    )
    async def page(self, request: Request) -> Response:
        return render_page(
            "push_hubs.html",
            section="Hubs",
            viewer=viewer_of(request),
            now=self._clock.now(),
            found=await self._reports.most_subscribed(SHOWN_HUBS),
        )
