"""``/admin/audit``: who did what, filtered by who, what, to what and when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from hub.runtime.clock import Clock
from hub.services.audit_trail import AuditTrail
from hub.services.token_authentication import TokenService
from hub.web.admin.page_access import (
    OperatorPages,
    PageAccess,
    viewer_of,
    without_blanks,
)
from hub.web.api.audit_routes import (
    AUDIT_LIST,
    audited_operations,
    query_audit,
)
from hub.web.api.selection_input import place_of, read_place
from hub.web.operation import HTML, Operation
from hub.web.page_rendering import render_page
from storage.records import AuditOutcome, AuditRecord, AuditSource, AuditTarget

ROWS: Final = 50
"""Records on a page."""
_PAGES: Final[Mapping[AuditTarget, str]] = {
    AuditTarget.FEED: "/admin/feeds/{}",
    AuditTarget.SUBSCRIPTION: "/admin/subscriptions/{}",
    AuditTarget.PLAN: "/admin/plans/{}",
    AuditTarget.TOKEN: "/admin/audit?token={}",
}
NOT_FOUND: Final = 404


class AuditPages(OperatorPages):
    def __init__(
        self, access: PageAccess, trail: AuditTrail, tokens: TokenService, clock: Clock
    ) -> None:
        super().__init__(access)
        self._trail = trail
        self._tokens = tokens
        self._clock = clock

    @Operation(
        method="GET",
        path="/admin/audit",
        id="get_audit_page",
        summary="Who did what, by account, token, operation, target and time",
        answers={200: {HTML: str}, 303: None},
        query=AUDIT_LIST,
        problems=(403, 422, 429, 503),
    )
    async def page(self, request: Request) -> Response:
        """The parameters are those of ``GET /api/audit``; empty ones do not count."""
        asked = without_blanks(request)
        now = self._clock.now()
        before = read_place(asked.query_params.get("before", ""))
        wanted = await query_audit(asked, self._tokens, now)
        page = await self._trail.page(wanted, before=before, limit=ROWS)
        return render_page(
            "audit.html",
            section="Audit",
            viewer=viewer_of(request),
            now=now,
            wanted=wanted,
            rows=[(each, _address(each)) for each in page.records],
            next=place_of(*page.next) if page.next else None,
            is_first=before is None,
            query={
                name: value
                for name, value in asked.query_params.items()
                if name != "before"
            },
            operations=audited_operations(),
            sources=tuple(AuditSource),
            targets=tuple(AuditTarget),
            outcomes=tuple(AuditOutcome),
        )


def _address(record: AuditRecord) -> str:
    """The path of the target's page; "" if there is none."""
    page = _PAGES.get(record.target) if record.target else None
    if page is None or record.target_id is None or record.status == NOT_FOUND:
        return ""
    return page.format(record.target_id)
