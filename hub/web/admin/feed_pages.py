"""``/admin/feeds``: the feeds and their states, one feed, and what is done to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from hub.core.status.feed_health import health_of
from hub.core.status.feed_pauses import first_polls
from hub.core.status.feed_timeline import expected_week, has_known_hours
from hub.runtime.clock import Clock
from hub.services import (
    FeedDocumentService,
    FeedReportService,
    FeedService,
    SelectedFeedService,
    SelectedSubscriptionService,
)
from hub.services.feed_requests import AddFeed, EditFeed
from hub.services.service_errors import SeveralFeeds
from hub.web.admin.feed_picture import (
    DAY_NAMES,
    draw_timeline,
    draw_week,
    half_within,
)
from hub.web.admin.page_access import (
    OperatorPages,
    PageAccess,
    redirect,
    viewer_of,
    without_blanks,
)
from hub.web.admin.plan_pages import filter_of
from hub.web.api.feed_routes import said_edit
from hub.web.api.selection_input import (
    FEED_LIST,
    HISTORY_SPAN,
    cursor_of,
    query_feeds,
    query_history_span,
    query_order,
)
from hub.web.audited_requests import name_target, note_detail
from hub.web.operation import HTML, Operation
from hub.web.page_rendering import render_page
from hub.web.request_input import LARGEST_PAGE, path_id, query_number
from protocols.model import FeedFormat
from protocols.protocol_errors import InvalidValue
from storage.records import (
    KEPT_POLLS,
    LISTED_HEALTH,
    AuditTarget,
    FeedId,
    FeedSort,
    FeedState,
)

ROWS: Final = 50
"""Feeds on a page, unless another number is requested."""
SHOWN_SUBSCRIBERS: Final = 10
SHOWN_ENTRIES: Final = 8
SHOWN_RUNS: Final = 12
SHOWN_PAUSES: Final = 3
DRAWN_POLLS: Final = 40
"""Polls in the picture, with the posts since: more would not fit into 100 kB."""
RUNS_OF_PAGE: Final = 100
"""Rows of a page of polls."""


class FeedPages(OperatorPages):
    def __init__(
        self,
        access: PageAccess,
        feeds: FeedService,
        reports: FeedReportService,
        documents: FeedDocumentService,
        subscriptions: SelectedSubscriptionService,
        selected: SelectedFeedService,
        clock: Clock,
    ) -> None:
        super().__init__(access)
        self._feeds = feeds
        self._reports = reports
        self._documents = documents
        self._subscriptions = subscriptions
        self._selected = selected
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
        page = await self._selected.page(
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
            rows=await self._selected.activities(page.feeds),
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
            formats=tuple(FeedFormat),
            filter=filter_of(asked),
        )

    @Operation(
        method="GET",
        path="/admin/feeds/{id}",
        id="get_feed_page",
        summary="One feed: how it is, why it is polled when it is, its last polls",
        answers={200: {HTML: str}, 303: None},
        problems=(403, 404, 429, 503),
    )
    async def show(self, request: Request) -> Response:
        feed_id = FeedId(path_id(request, "feed"))
        report = await self._reports.get(feed_id, is_whole=False)
        history = await self._reports.history_of(
            report.feed, limit=KEPT_POLLS, has_pauses=False
        )
        drawn = replace(history, polls=history.polls[:DRAWN_POLLS])
        timeline = await self._reports.timeline(drawn)
        now, viewer = self._clock.now(), viewer_of(request)
        is_drawn = viewer.recorder is None  # a week changes too slowly
        expected = expected_week(report.plan.forecast) if is_drawn else ()
        has_hours = has_known_hours(report.feed.polling.posting, now)
        return render_page(
            "feed.html",
            section="Feeds",
            viewer=viewer,
            now=now,
            report=report,
            activity=self._selected.activity(report),
            health=health_of(report.feed),
            is_polled=report.feed.state is FeedState.ACTIVE,
            is_editable=report.feed.state not in _FIXED,
            explanation=self._reports.explanation(report),
            polls=history.polls,
            runs=history.runs()[:SHOWN_RUNS],
            after_pause=first_polls(timeline.pauses, history.polls),
            latest=await self._documents.entries_of(report.feed, SHOWN_ENTRIES),
            pauses=timeline.pauses[-SHOWN_PAUSES:],
            timeline=timeline,
            lanes=draw_timeline(timeline),
            half_within=half_within(timeline),
            expected=expected,
            week=draw_week(expected) if has_hours and expected else (),
            day_names=DAY_NAMES,
            subscribers=await self._subscriptions.of_feed(feed_id, SHOWN_SUBSCRIBERS),
            actions=_ACTIONS.get(report.feed.state, _STOPPED),
            done=_DONE.get(request.query_params.get("done", ""), ""),
        )

    @Operation(
        method="GET",
        path="/admin/feeds/{id}/polls",
        id="get_feed_polls_page",
        summary="The polls of a feed, by time, with their reasons and outcomes",
        answers={200: {HTML: str}, 303: None},
        query=HISTORY_SPAN,
        problems=(403, 404, 422, 429, 503),
    )
    async def polls(self, request: Request) -> Response:
        """Those of ``GET /api/feeds/{id}/history``, those that are alike in one row."""
        now, asked = self._clock.now(), without_blanks(request)
        since, until = query_history_span(asked, now)
        feed_id = FeedId(path_id(request, "feed"))
        history = await self._reports.history(feed_id, since, until)
        runs = history.runs()
        return render_page(
            "feed_polls.html",
            section="Feeds",
            viewer=viewer_of(request),
            now=now,
            feed=history.feed,
            since=since,
            until=until,
            runs=runs[:RUNS_OF_PAGE],
            history=history,
            after_pause=first_polls(history.pauses, history.polls),
            next_reason=await self._reports.reason(history.feed),
            total=len(history.polls),
            has_more=len(runs) > RUNS_OF_PAGE,
            query=dict(asked.query_params),
        )

    @Operation(
        method="POST",
        path="/admin/feeds",
        id="add_feed_of_page",
        summary="Add a feed, or the one that a page names",
        answers={300: {HTML: str}, 303: None},
        problems=(403, 409, 422, 429, 503),
    )
    async def add(self, request: Request) -> Response:
        viewer = viewer_of(request)
        form = viewer.form
        wanted = AddFeed(
            url=form.get("url", "").strip(),
            category=form.get("category", "").strip(),
            private="private" in form,
            discover=True,
        )
        try:
            added = await self._feeds.add(wanted)
        except SeveralFeeds as several:
            return render_page(
                "several_feeds.html",
                status=HTTPStatus.MULTIPLE_CHOICES,
                section="Feeds",
                viewer=viewer,
                now=self._clock.now(),
                several=several,
                wanted=wanted,
            )
        name_target(request, AuditTarget.FEED, added.feed.id)
        return _back(added.feed.id, "added" if added.is_new else "known")

    @Operation(
        method="POST",
        path="/admin/feeds/{id}/edit",
        id="edit_feed_of_page",
        summary="Change a feed's URL, category, privacy or own period",
        answers={303: None},
        problems=(403, 404, 409, 422, 429, 503),
    )
    async def edit(self, request: Request) -> Response:
        feed_id = FeedId(path_id(request, "feed"))
        form = viewer_of(request).form
        change = EditFeed(
            url=form.get("url", "").strip() or None,
            category=form.get("category", "").strip(),
            private="private" in form,
            own_period=_period(form.get("own_period", "").strip()),
        )
        note_detail(request, said_edit(change))
        await self._feeds.edit(feed_id, change)
        return _back(feed_id, "edited")

    @Operation(
        method="POST",
        path="/admin/feeds/{id}/remove",
        id="remove_feed_of_page",
        summary="Remove a feed and end its subscriptions",
        answers={303: None},
        problems=(403, 404, 429, 503),
    )
    async def remove(self, request: Request) -> Response:
        feed_id = FeedId(path_id(request, "feed"))
        await self._feeds.remove(feed_id)
        return _back(feed_id, "removed")

    @Operation(
        method="POST",
        path="/admin/feeds/{id}/fetch",
        id="fetch_feed_of_page",
        summary="Fetch a feed now",
        answers={303: None},
        problems=(403, 404, 409, 429, 503),
    )
    async def fetch(self, request: Request) -> Response:
        feed_id = FeedId(path_id(request, "feed"))
        fetched = await self._feeds.fetch(feed_id)
        return _back(feed_id, "fetched" if fetched.is_fetched else "waiting")

    @Operation(
        method="POST",
        path="/admin/feeds/{id}/pause",
        id="pause_feed_of_page",
        summary="Pause a feed: it is not polled until it is resumed",
        answers={303: None},
        problems=(403, 404, 409, 429, 503),
    )
    async def pause(self, request: Request) -> Response:
        feed_id = FeedId(path_id(request, "feed"))
        await self._feeds.pause(feed_id)
        return _back(feed_id, "paused")

    @Operation(
        method="POST",
        path="/admin/feeds/{id}/resume",
        id="resume_feed_of_page",
        summary="Resume a feed: it is polled again",
        answers={303: None},
        problems=(403, 404, 409, 429, 503),
    )
    async def resume(self, request: Request) -> Response:
        feed_id = FeedId(path_id(request, "feed"))
        await self._feeds.resume(feed_id)
        return _back(feed_id, "resumed")


_FETCH: Final = ("fetch", "Fetch now")
_STOPPED: Final = (_FETCH, ("resume", "Resume"))
_ACTIONS: Final[Mapping[FeedState, tuple[tuple[str, str], ...]]] = {
    FeedState.ACTIVE: (_FETCH, ("pause", "Pause")),
    FeedState.REMOVED: (),
    FeedState.TRACK: (),
}
"""What can be done to a feed, by the name of the route and of the button."""
_FIXED: Final = frozenset({FeedState.REMOVED, FeedState.TRACK, FeedState.EVENTS})
"""States of feeds in which nothing can be changed."""
_DONE: Final[Mapping[str, str]] = {
    "added": "The feed was added.",
    "known": "The feed was there already; adding it changes nothing.",
    "edited": "The feed was changed.",
    "removed": "The feed was removed, and its subscriptions have ended.",
    "fetched": "The feed was fetched.",
    "waiting": "The feed was not fetched yet: its server asked for no request before"
    " a later time, or has not answered.",
    "paused": "The feed is paused: it is not polled until it is resumed.",
    "credentials": "The feed is fetched with these credentials, and private.",
    "open": "The feed is fetched without credentials; it stays private until you"
    " change that.",
    "resumed": "The feed is resumed: it is polled again.",
}


def _back(feed_id: FeedId, done: str) -> Response:
    """Redirect to the feed's page, which says what was done."""
    return redirect(f"/admin/feeds/{feed_id}?done={done}")


def _period(written: str) -> float:
    """Seconds between polls; 0, as planned, if nothing is written.

    Raises `InvalidValue`.
    """
    try:
        return float(written or 0)
    except ValueError:
        raise InvalidValue("own_period", "a number of seconds", written) from None
