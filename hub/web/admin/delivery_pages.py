"""``/admin/deliveries``: what callbacks did not take, and what was given up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from hub.core.delivery.request_stages import STAGE_WORDS
from hub.runtime.clock import Clock
from hub.services.delivery_reports import DeliveryReportService
from hub.services.undelivered_records import UndeliveredService
from hub.web.admin.page_access import (
    OperatorPages,
    PageAccess,
    redirect,
    viewer_of,
    without_blanks,
)
from hub.web.api.delivery_routes import MOST_COUNTED, place_of, read_place
from hub.web.api.selection_input import DELIVERY_LIST, query_deliveries
from hub.web.operation import HTML, Operation, Parameter
from hub.web.page_rendering import render_page
from hub.web.request_input import path_id
from storage.contract import DeliveryStore
from storage.records import SubscriptionId

ROWS: Final = 50
"""Of a page."""
SHOWN_DEAD_LETTERS: Final = 20
SHOWN_RETRYING: Final = 20


class DeliveryPages(OperatorPages):
    def __init__(
        self,
        access: PageAccess,
        deliveries: DeliveryStore,
        reports: DeliveryReportService,
        undelivered: UndeliveredService,
        clock: Clock,
    ) -> None:
        super().__init__(access)
        self._deliveries = deliveries
        self._reports = reports
        self._undelivered = undelivered
        self._clock = clock

    @Operation(
        method="GET",
        path="/admin/deliveries",
        id="get_deliveries_page",
        summary="Failed requests, dead letters and retrying subscriptions",
        answers={200: {HTML: str}, 303: None},
        query=(
            *DELIVERY_LIST,
            Parameter(name="before", help="next of the page before"),
        ),
        problems=(403, 422, 429, 503),
    )
    async def page(self, request: Request) -> Response:
        """The parameters are those of ``GET /api/deliveries/failed``."""
        asked = without_blanks(request)
        now = self._clock.now()
        wanted = query_deliveries(asked).filter(now)
        before = read_place(asked.query_params.get("before", ""))
        failed = await self._deliveries.failed_attempts(
            wanted, limit=ROWS, before=before
        )
        total = await self._deliveries.count_failed_attempts(wanted, MOST_COUNTED + 1)
        dead_letters = await self._deliveries.dead_letters(
            after=0, limit=SHOWN_DEAD_LETTERS, wanted=wanted
        )
        retrying = await self._deliveries.retrying(
            after=SubscriptionId(0), limit=SHOWN_RETRYING, wanted=wanted
        )
        return render_page(
            "deliveries.html",
            section="Deliveries",
            viewer=viewer_of(request),
            now=now,
            failed=failed,
            total=min(total, MOST_COUNTED),
            has_more=total > MOST_COUNTED,
            next=place_of(failed[-1]) if len(failed) == ROWS else None,
            is_first=before is None,
            dead_letters=dead_letters,
            most_dead_letters=SHOWN_DEAD_LETTERS,
            retrying=retrying,
            most_retrying=SHOWN_RETRYING,
            query={
                name: value
                for name, value in asked.query_params.items()
                if name not in ("before", "done")
            },
            done=_DONE.get(asked.query_params.get("done", ""), ""),
        )

    @Operation(
        method="GET",
        path="/admin/deliveries/{id}",
        id="get_delivery_page",
        summary="A failed request in full, with where it failed and the answer",
        answers={200: {HTML: str}, 303: None},
        problems=(403, 404, 429, 503),
    )
    async def show(self, request: Request) -> Response:
        report = await self._reports.get(path_id(request, "failed delivery"))
        sent, details = report.request, report.failed.attempt.details
        return render_page(
            "delivery.html",
            section="Deliveries",
            viewer=viewer_of(request),
            now=self._clock.now(),
            report=report,
            stage=STAGE_WORDS[details.stage] if details else "not kept",
            body=sent.body.decode(errors="replace") if sent else "",
        )

    @Operation(
        method="POST",
        path="/admin/dead-letters/{id}/retry",
        id="retry_dead_letter_of_page",
        summary="Send what was given up after all",
        answers={303: None},
        problems=(403, 404, 409, 429, 503),
    )
    async def retry(self, request: Request) -> Response:
        await self._undelivered.retry_dead_letter(path_id(request, "dead letter"))
        return redirect("/admin/deliveries?done=due")

    @Operation(
        method="POST",
        path="/admin/dead-letters/{id}/discard",
        id="discard_dead_letter_of_page",
        summary="Discard what was given up",
        answers={303: None},
        problems=(403, 404, 429, 503),
    )
    async def discard(self, request: Request) -> Response:
        await self._undelivered.discard_dead_letter(path_id(request, "dead letter"))
        return redirect("/admin/deliveries?done=discarded")


_DONE: Final[Mapping[str, str]] = {
    "due": "The dead letter is sent now; it is listed here again if that fails.",
    "discarded": "The dead letter was discarded: it is not sent any more.",
}
