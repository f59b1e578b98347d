"""``/admin/feeds``: the feeds, how they are, and what is done to one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from hub.core.status.feed_health import HealthReport, health_of
from hub.runtime.clock import Clock
from hub.web.admin.page_access import OperatorPages, PageAccess, viewer_of
from hub.web.api.selection_input import (
    FEED_LIST,
    cursor_of,
    query_feeds,
    query_order,
)
from hub.web.operation import HTML, Operation
from hub.web.page_rendering import render_page
from hub.web.request_input import LARGEST_PAGE, query_number
from storage.contract import FeedSelectionStore
from storage.records import LISTED_HEALTH, FeedSort, FeedState, StoredFeed

ROWS: Final = 50
"""Of a page, unless it is asked for another number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRow:
    feed: StoredFeed
    health: HealthReport
    is_polled: bool


class FeedPages(OperatorPages):
    def __init__(
        self, access: PageAccess, selections: FeedSelectionStore, clock: Clock
    ) -> None:
        super().__init__(access)
        self._selections = selections
        self._clock = clock

    @Operation(
        method="GET",
        path="/admin/feeds",
        id="get_feeds_page",
        summary="The feeds, filtered and sorted",
        answers={200: {HTML: str}, 303: None},
        query=FEED_LIST,
        problems=(403, 422, 429, 503),
    )
    async def page(self, request: Request) -> Response:
        """The parameters are those of ``GET /api/feeds``; empty ones do not count."""
        asked = without_blanks(request)
        now = self._clock.now()
        sort, after = query_order(asked, FeedSort.ID)
        page = await self._selections.page(
            query_feeds(asked).filter(now),
            sort,
            after=after,
            limit=query_number(asked, "limit", ROWS, LARGEST_PAGE, least=1),
        )
        return render_page(
            "feeds.html",
            section="Feeds",
            viewer=viewer_of(request),
            now=now,
            rows=[_row(each) for each in page.feeds],
            total=page.total,
            next=cursor_of(page.next),
            is_first=after is None,
            sort=sort,
            query={
                name: value
                for name, value in asked.query_params.items()
                if name not in ("cursor", "after")
            },
            states=LISTED_HEALTH,
        )


def _row(feed: StoredFeed) -> FeedRow:
    is_polled = feed.state is FeedState.ACTIVE
    return FeedRow(feed=feed, health=health_of(feed), is_polled=is_polled)


def without_blanks(request: Request) -> Request:
    """The request without empty parameters, as forms send those not filled in."""
    given = [(name, value) for name, value in request.query_params.multi_items()]
    query = urlencode([(name, value) for name, value in given if value.strip()])
    return Request({**request.scope, "query_string": query.encode()})
