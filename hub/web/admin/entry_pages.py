"""``/admin/entries/{id}``: one entry, and its way through the hub."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from hub.runtime.clock import Clock
from hub.services.entry_reports import EntryReportService
from hub.web.admin.page_access import OperatorPages, PageAccess, viewer_of
from hub.web.operation import HTML, Operation
from hub.web.page_rendering import render_page
from hub.web.request_input import path_id
from protocols.model import Entry
from protocols.text import text_of_html
from storage.records import EntryId

SHOWN_TEXT = 20_000
"""Characters of an entry's content."""


class EntryPages(OperatorPages):
    def __init__(
        self, access: PageAccess, entries: EntryReportService, clock: Clock
    ) -> None:
        super().__init__(access)
        self._entries = entries
        self._clock = clock

    @Operation(
        method="GET",
        path="/admin/entries/{id}",
        id="get_entry_page",
        summary="One entry: published, seen, committed, delivered",
        answers={200: {HTML: str}, 303: None},
        problems=(403, 404, 429, 503),
    )
    async def show(self, request: Request) -> Response:
        report = await self._entries.get(EntryId(path_id(request, "entry")))
        text = _text_of(report.entry)
        return render_page(
            "entry.html",
            section="Feeds",
            viewer=viewer_of(request),
            now=self._clock.now(),
            report=report,
            text=text[:SHOWN_TEXT],
            is_cut=len(text) > SHOWN_TEXT,
            link=next(
                (
                    each.href
                    for each in report.entry.links
                    if each.rel == "alternate"
                    and each.href.startswith(("https://", "http://"))
                ),
                "",
            ),
        )


def _text_of(entry: Entry) -> str:
    """What it says, without markup: what a feed sends never becomes part of a page."""
    text = entry.content or entry.summary
    return text_of_html(text.value) if text else ""
