"""``/admin``: the state of the hub in words, and what needs attention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from hub.runtime.clock import Clock
from hub.services import HealthService, HubSeries
from hub.services.hub_health import Health
from hub.services.hub_series import SeriesRange
from hub.web.admin.hub_picture import (
    RANGE_WORDS,
    HubPicture,
    default_range,
    delay_text,
)
from hub.web.admin.page_access import OperatorPages, PageAccess, Viewer, viewer_of
from hub.web.operation import HTML, Operation, Parameter
from hub.web.page_rendering import render_page
from hub.web.request_input import query_choice
from storage.records import FeedHealth, SubscriptionHealth

OFTEN: Final = 5
"""Starts in an hour that are too many to be meant."""
_OFTEN_WITHIN: Final = 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Something to look at, and the page that shows it."""

    what: str
    path: str


class OverviewPages(OperatorPages):
    def __init__(
        self,
        access: PageAccess,
        operations: HealthService,
        series: HubSeries,
        clock: Clock,
    ) -> None:
        super().__init__(access)
        self._operations = operations
        self._series = series
        self._picture = HubPicture(series, clock)
        self._clock = clock
        self._streams = access.streams
        self._watched: tuple[int, Health] | None = None

    @Operation(
        method="GET",
        path="/admin",
        id="get_overview_page",
        summary="How the hub is and was, and what needs attention",
        answers={200: {HTML: str}, 303: None},
        query=(
            Parameter(
                name="range", help="how far plots go back", choices=tuple(SeriesRange)
            ),
        ),
        problems=(403, 422, 429, 503),
    )
    async def show(self, request: Request) -> Response:
        chosen = query_choice(request, "range", SeriesRange)
        health = await self._health(viewer_of(request))
        range = chosen or default_range(health.uptime)
        return render_page(
            "overview.html",
            section="Overview",
            viewer=viewer_of(request),
            now=self._clock.now(),
            health=health,
            is_ready=not any(each.is_error for each in health.conditions),
            attention=[*self._restarts(), *_attention(health)],
            range=range,
            ranges=RANGE_WORDS,
            picture=self._picture.show(range),
            starts=self._starts(),
            delay_text=delay_text,
        )

    def _starts(self) -> list[datetime]:
        """When the hub was started in the last day."""
        now = self._clock.unix()
        starts = self._series.starts(now - SeriesRange.DAY.seconds, now + 1)
        return [datetime.fromtimestamp(each, UTC) for each in starts]

    def _restarts(self) -> Iterator[Attention]:
        """What is to be said of a hub that was started again and again."""
        now = self._clock.unix()
        number = len(self._series.starts(now - _OFTEN_WITHIN, now + 1))
        if number >= OFTEN:
            what = f"the hub was started {number:,} times in the last hour"
            yield Attention(what=what, path="/admin?range=6h#flight")

    async def _health(self, viewer: Viewer) -> Health:
        """The hub's health, read once for all watched overviews of any range."""
        if viewer.recorder is None:
            return await self._operations.health()
        turn = self._streams.turn
        if self._watched is None or self._watched[0] != turn:
            self._watched = turn, await self._operations.health()
        return self._watched[1]


def _attention(health: Health) -> Iterator[Attention]:
    """What is wrong with feeds and subscriptions, without the hub's own conditions."""
    feeds, subscriptions = health.feeds, health.subscriptions
    if failing := feeds[FeedHealth.FAILING]:
        yield Attention(
            what=_counted(failing, "feed is failing", "feeds are failing"),
            path="/admin/feeds?state=failing&sort=since",
        )
    if gone := feeds[FeedHealth.GONE]:
        yield Attention(
            what=_counted(
                gone,
                "feed is gone and no longer polled",
                "feeds are gone and no longer polled",
            ),
            path="/admin/feeds?state=gone&sort=since",
        )
    if failing := subscriptions[SubscriptionHealth.FAILING]:
        yield Attention(
            what=_counted(
                failing, "subscription is failing", "subscriptions are failing"
            ),
            path="/admin/subscriptions?state=failing&sort=since",
        )
    if slow := subscriptions[SubscriptionHealth.SLOW]:
        yield Attention(
            what=_counted(slow, "subscription is slow", "subscriptions are slow"),
            path="/admin/subscriptions?state=slow&sort=since",
        )
    if gone := health.ended_subscriptions.gone_of_day:
        yield Attention(
            what=_counted(
                gone,
                "subscription ended in the last day: its callback is gone (410)",
                "subscriptions ended in the last day: their callbacks are gone (410)",
            ),
            path="/admin/subscriptions?state=gone&within=1d&sort=-since",
        )
    if dead_letters := health.backlog.dead_letters:
        yield Attention(
            what=_counted(dead_letters, "dead letter", "dead letters")
            + ": deliveries that were given up",
            path="/admin/deliveries#dead-letters",
        )


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
