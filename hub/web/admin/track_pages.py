"""``/admin/track``: what a track query means, and what it would have found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from hub.runtime.clock import Clock
from hub.services.entry_search import SearchService
from hub.services.service_errors import SearchOff, TooManyWaiting
from hub.services.token_authentication import Principal
from hub.web.admin.page_access import OperatorPages, PageAccess, viewer_of
from hub.web.operation import HTML, Operation
from hub.web.page_rendering import render_page
from protocols.model import Entry
from protocols.protocol_errors import InvalidValue
from protocols.track import parse_query
from storage.packing import unpack
from storage.records import EntryId, EntrySource, Format, StoredEntry

SHOWN_MATCHES: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialMatch:
    id: EntryId
    title: str
    published: datetime | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackTrial:
    """A query that was tried, and what it would have found.

    ``understood``: the query written out; "" if it is none, and ``error`` says why.
    ``forecast``: matches a day, None without a search; by those of the last week if
    ``is_of_week``, else by all of ``matches``.
    """

    understood: str = ""
    error: str = ""
    line: str = ""
    matches: tuple[TrialMatch, ...] = ()
    forecast: float | None = None
    is_of_week: bool = False


class TrackPages(OperatorPages):
    def __init__(
        self,
        access: PageAccess,
        search: SearchService,
        public_url: str,
        clock: Clock,
    ) -> None:
        super().__init__(access)
        self._search = search
        self._public_url = public_url
        self._clock = clock

    @Operation(
        method="GET",
        path="/admin/track",
        id="get_track_page",
        summary="How a track query is understood, and which entries it matches",
        answers={200: {HTML: str}, 303: None},
        problems=(403, 422, 429, 503),
    )
    async def page(self, request: Request) -> Response:
        viewer = viewer_of(request)
        query = request.query_params.get("query", "").strip()
        trial = await self._try(viewer.principal, query) if query else TrackTrial()
        is_wrong = bool(query) and not trial.understood
        return render_page(
            "track.html",
            status=HTTPStatus.UNPROCESSABLE_ENTITY if is_wrong else HTTPStatus.OK,
            section="Track",
            viewer=viewer,
            now=self._clock.now(),
            query=query,
            trial=trial,
            topic=f"{self._public_url}/track?{urlencode({'query': query})}",
            formats=(Format.JSON, Format.ATOM),
        )

    async def _try(self, principal: Principal, query: str) -> TrackTrial:
        try:
            understood = str(parse_query(query))
        except InvalidValue as error:
            return TrackTrial(error=str(error))
        try:
            found = await self._search.find(principal, query, SHOWN_MATCHES)
        except (SearchOff, TooManyWaiting) as error:
            return TrackTrial(understood=understood, error=str(error))
        matches = _matches(found.entries, found.sources)
        return TrackTrial(
            understood=understood,
            line=found.line,
            matches=matches,
            forecast=await self._search.per_day(
                found.entries, SHOWN_MATCHES, self._clock.now()
            ),
            is_of_week=len(matches) < SHOWN_MATCHES,
        )


def _matches(
    entries: Sequence[StoredEntry], sources: Sequence[EntrySource]
) -> tuple[TrialMatch, ...]:
    feeds = {each.feed.id: each.feed for each in sources}
    return tuple(
        TrialMatch(
            id=each.id,
            title=entry.title,
            published=entry.published or entry.updated,
            source=feeds[each.feed_id].title or feeds[each.feed_id].url,
        )
        for each in entries
        for entry in (unpack(each.body, Entry),)
    )
