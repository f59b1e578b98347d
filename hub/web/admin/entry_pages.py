"""``/admin/entries``: which entries were committed in a span of time, and one entry
with its way through the hub."""

from __future__ import annotations

from datetime import timedelta
from math import inf
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from hub.runtime.clock import Clock
from hub.services import FeedReportService, HubSeries
from hub.services.committed_entries import (
    ALL_COMMITTED,
    CommittedEntryService,
    EntryOrder,
)
from hub.services.entry_reports import EntryReportService
from hub.web.admin.hub_picture import draw_flight_of
from hub.web.admin.page_access import (
    OperatorPages,
    PageAccess,
    viewer_of,
    without_blanks,
)
from hub.web.api.selection_input import (
    COMMITTED,
    SPAN,
    entry_cursor_text,
    query_committed,
    query_entry_cursor,
    query_span,
)
from hub.web.operation import HTML, Operation, Parameter
from hub.web.page_rendering import render_page
from hub.web.request_input import path_id, query_choice
from protocols.model import Entry
from protocols.text import text_of_html
from storage.records import EntryId

SHOWN_TEXT = 20_000
"""Characters of an entry's content that are shown."""
ROWS: Final = 50
"""Entries on a page."""
SHORTEST_DRAWN: Final = timedelta(minutes=2)
"""The shortest span that is drawn: shorter ones would show nothing more. Only the
entries of all feeds are."""


class EntryPages(OperatorPages):
    def __init__(
        self,
        access: PageAccess,
        committed: CommittedEntryService,
        reports: EntryReportService,
        feeds: FeedReportService,
        series: HubSeries,
        clock: Clock,
    ) -> None:
        super().__init__(access)
        self._committed = committed
        self._reports = reports
        self._feeds = feeds
        self._series = series
        self._clock = clock

    @Operation(
        method="GET",
        path="/admin/entries",
        id="get_entries_page",
        summary="The entries that were committed in a span of time, with their delays",
        answers={200: {HTML: str}, 303: None},
        query=(
            *SPAN,
            Parameter(
                name="order",
                help="the newest first, or the longest after their publication",
                choices=(EntryOrder.LATEST, EntryOrder.DELAY),
            ),
            *COMMITTED,
            Parameter(name="cursor", help="next of the page before"),
        ),
        problems=(403, 422, 429, 503),
    )
    async def page(self, request: Request) -> Response:
        """Show the entries of ``GET /api/entries``, the newest first unless asked
        otherwise; it has the same parameters."""
        asked, now = without_blanks(request), self._clock.now()
        since, until = query_span(asked, now)
        cursor, wanted = query_entry_cursor(asked), query_committed(asked)
        is_by_delay = query_choice(asked, "order", EntryOrder) is EntryOrder.DELAY
        order = EntryOrder.DELAY if is_by_delay else EntryOrder.LATEST
        page = await self._committed.page(
            since,
            until,
            limit=ROWS,
            cursor=cursor,
            order=order,
            wanted=wanted,
        )
        is_drawn = wanted == ALL_COMMITTED and until - since >= SHORTEST_DRAWN
        return render_page(
            "entries.html",
            section="Entries",
            viewer=viewer_of(request),
            now=now,
            since=since,
            until=until,
            page=page,
            is_by_delay=is_by_delay,
            has_bound=page.others_within != inf,
            next=entry_cursor_text(page.next),
            is_first=cursor is None,
            span=until - since,
            query=dict(asked.query_params),
            kept={
                name: asked.query_params[name]
                for name in ("order", "feed", "search")
                if name in asked.query_params
            },
            flight=draw_flight_of(self._series, since, until) if is_drawn else None,
        )

    @Operation(
        method="GET",
        path="/admin/entries/{id}",
        id="get_entry_page",
        summary="One entry: published, seen, committed, delivered",
        answers={200: {HTML: str}, 303: None},
        problems=(403, 404, 429, 503),
    )
    async def show(self, request: Request) -> Response:
        report = await self._reports.get(EntryId(path_id(request, "entry")))
        text = _text_of(report.entry)
        return render_page(
            "entry.html",
            section="Entries",
            viewer=viewer_of(request),
            now=self._clock.now(),
            report=report,
            pauses=await self._feeds.pauses_before(report),
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
    """The entry's text without markup: a feed's markup never becomes part of a page."""
    text = entry.content or entry.summary
    return text_of_html(text.value) if text else ""
