"""``/admin/hubs``: other people's hubs, and how well each pushes the feeds that name
it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from hub.core.push.used_hubs import UsedHubs
from hub.runtime.clock import Clock
from hub.web.admin.page_access import OperatorPages, PageAccess, viewer_of
from hub.web.operation import HTML, Operation
from hub.web.page_rendering import render_page
from storage.contract import PushStore
from storage.records import PushCount, PushHub

SHOWN_HUBS: Final = 100
"""Hubs on the page: those with the most subscriptions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubRow:
    """A hub of other people, and counts of what it did.

    ``first_share``: the share of the feeds' new entries that the hub brought before a
    poll found them, from 0 to 1; None if there were none. ``is_used`` False: feeds are
    not subscribed there, as it is set.
    """

    hub: str
    is_used: bool
    counts: Mapping[str, int]
    first_share: float | None


class PushHubPages(OperatorPages):
    def __init__(
        self,
        access: PageAccess,
        pushes: PushStore,
        clock: Clock,
        used: UsedHubs,
    ) -> None:
        super().__init__(access)
        self._used = used
        self._pushes = pushes
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
        hubs = await self._pushes.hubs(SHOWN_HUBS + 1)
        found = [_row(each, is_used=self._used.include(each.hub)) for each in hubs]
        total, rows = found[:1], found[1:]  # the sums come first
        return render_page(
            "push_hubs.html",
            section="Hubs",
            viewer=viewer_of(request),
            now=self._clock.now(),
            is_on=self._used.is_on,
            total=total,
            rows=rows[:SHOWN_HUBS],
            has_more=len(rows) > SHOWN_HUBS,
        )


def _row(found: PushHub, *, is_used: bool) -> HubRow:
    counts = {each.value: 0 for each in PushCount}
    counts |= {what.value: count for what, count in found.counts}
    brought, missed = counts[PushCount.BROUGHT], counts[PushCount.MISSED]
    news = brought + missed
    return HubRow(
        hub=found.hub,
        is_used=is_used,
        counts=counts,
        first_share=brought / news if news else None,
    )
