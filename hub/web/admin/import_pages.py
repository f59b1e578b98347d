"""``/admin/imports``: lists of feeds in OPML, which are checked, confirmed and added.

``/admin/feeds.opml`` is a list of the feeds that a filter finds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from hub.runtime.clock import Clock
from hub.services.feed_exports import FeedExportService
from hub.services.feed_imports import FeedImport, FeedImportService, ImportState
from hub.services.feed_requests import ImportOutcome
from hub.web.admin.page_access import (
    OperatorPages,
    PageAccess,
    redirect,
    viewer_of,
    without_blanks,
)
from hub.web.api.selection_input import FEED_LIST, query_feeds
from hub.web.audited_requests import name_target
from hub.web.operation import HTML, Operation
from hub.web.page_rendering import PAGE_HEADERS, render_page
from hub.web.request_input import path_id
from protocols.opml import OPML_TYPE
from protocols.protocol_errors import InvalidValue
from storage.records import AuditTarget

SHOWN_NEW: Final = 10
_STATES: Final[Mapping[ImportState, str]] = {
    ImportState.CHECKING: "being checked",
    ImportState.CHECKED: "to be confirmed",
    ImportState.ADDING: "being added",
    ImportState.DONE: "done",
    ImportState.STOPPED: "stopped",
}


class ImportPages(OperatorPages):
    def __init__(
        self,
        access: PageAccess,
        imports: FeedImportService,
        exports: FeedExportService,
        clock: Clock,
    ) -> None:
        super().__init__(access)
        self._imports = imports
        self._exports = exports
        self._clock = clock

    @Operation(
        method="GET",
        path="/admin/feeds.opml",
        id="get_feed_list_of_page",
        summary="The feeds that the list's filter finds, as OPML 2.0",
        answers={200: {"text/x-opml": str}, 303: None},
        query=FEED_LIST,
        problems=(403, 422, 429, 503),
    )
    async def export(self, request: Request) -> Response:
        wanted = query_feeds(without_blanks(request)).filter(self._clock.now())
        headers = {
            **PAGE_HEADERS,
            "Content-Type": OPML_TYPE,
            "Content-Disposition": 'attachment; filename="feeds.opml"',
        }
        return Response(await self._exports.render(wanted), headers=headers)

    @Operation(
        method="GET",
        path="/admin/imports",
        id="get_imports_page",
        summary="The last lists that were imported, and a form for another one",
        answers={200: {HTML: str}, 303: None},
        problems=(403, 429, 503),
    )
    async def page(self, request: Request) -> Response:
        return render_page(
            "imports.html",
            section="Feeds",
            viewer=viewer_of(request),
            now=self._clock.now(),
            imports=self._imports.latest(),
            states=_STATES,
            outcome=ImportOutcome,
        )

    @Operation(
        method="POST",
        path="/admin/imports",
        id="make_import_of_page",
        summary="Check a list of feeds, as a file or as text; nothing is added yet",
        answers={303: None},
        problems=(400, 403, 408, 413, 422, 429, 503),
    )
    async def make(self, request: Request) -> Response:
        viewer = viewer_of(request)
        form = viewer.form
        document = viewer.files.get("list") or form.get("text", "").strip().encode()
        if not document:
            raise InvalidValue("list", "a file, or the text of one")
        made = await self._imports.make(
            viewer.principal.account,
            document,
            category=form.get("category", "").strip(),
            private="private" in form,
        )
        name_target(request, AuditTarget.IMPORT, made.id)
        return _to(made)

    @Operation(
        method="GET",
        path="/admin/imports/{id}",
        id="get_import_page",
        summary="One list: how many feeds are new, known and refused, and what came",
        answers={200: {HTML: str}, 303: None},
        problems=(403, 404, 429, 503),
    )
    async def show(self, request: Request) -> Response:
        found = self._imports.get(path_id(request, "import"))
        return render_page(
            "import.html",
            section="Feeds",
            viewer=viewer_of(request),
            now=self._clock.now(),
            list=found,
            state=found.state,
            outcome=ImportOutcome,
            shown=found.new[:SHOWN_NEW],
        )

    @Operation(
        method="POST",
        path="/admin/imports/{id}/confirm",
        id="confirm_import_of_page",
        summary="Add the feeds of a list that are new",
        answers={303: None},
        problems=(403, 404, 409, 429, 503),
    )
    async def confirm(self, request: Request) -> Response:
        return _to(self._imports.confirm(path_id(request, "import")))

    @Operation(
        method="POST",
        path="/admin/imports/{id}/stop",
        id="stop_import_of_page",
        summary="Add no more of a list; what was added stays",
        answers={303: None},
        problems=(403, 404, 409, 429, 503),
    )
    async def stop(self, request: Request) -> Response:
        return _to(self._imports.stop(path_id(request, "import")))


def _to(shown: FeedImport) -> Response:
    return redirect(f"/admin/imports/{shown.id}")
