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
from hub.services.entry_search import MatchRate, SearchService
from hub.services.service_errors import SearchOff, TooManyWaiting
from hub.services.token_authentication import Principal
from hub.web.admin.page_access import (
    OperatorPages,
    PageAccess,
    viewer_of,
    without_blanks,
)
from hub.web.api.search_routes import SEARCH_CURSOR, query_search_cursor
from hub.web.operation import HTML, Operation, Parameter
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
    ``line``: how many were found, and how far was looked; "" without a search.
    ``rate``: how many matches come a day, None without a search and on later pages than
    the first. ``next``: where the next page begins, None at the end.
    """

    understood: str = ""
    error: str = ""
    line: str = ""
    matches: tuple[TrialMatch, ...] = ()
    rate: MatchRate | None = None
    next: int | None = None


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
        query=(
            Parameter(name="query", help="words, in the language of track queries"),
            SEARCH_CURSOR,
        ),
        problems=(403, 422, 429, 503),
    )
    async def page(self, request: Request) -> Response:
        viewer = viewer_of(request)
        query = request.query_params.get("query", "").strip()
        below = query_search_cursor(without_blanks(request))
        trial = TrackTrial()
        if query:
            trial = await self._try(viewer.principal, query, below)
        is_wrong = bool(query) and not trial.understood
        return render_page(
            "track.html",
            status=HTTPStatus.UNPROCESSABLE_ENTITY if is_wrong else HTTPStatus.OK,
            section="Track",
            viewer=viewer,
            now=self._clock.now(),
            query=query,
            trial=trial,
            is_first=below is None,
            topic=f"{self._public_url}/track?{urlencode({'query': query})}",
            formats=(Format.JSON, Format.ATOM),
        )

    async def _try(
        self, principal: Principal, query: str, below: int | None
    ) -> TrackTrial:
        try:
            understood = str(parse_query(query))
        except InvalidValue as error:
            return TrackTrial(error=str(error))
        try:
            found = await self._search.find(principal, query, SHOWN_MATCHES, below)
        except (SearchOff, TooManyWaiting) as error:
            return TrackTrial(understood=understood, error=str(error))
        rate = None
        if below is None:
            rate = await self._search.rate(found, self._clock.now())
        return TrackTrial(
            understood=understood,
            line=found.line,
            matches=_matches(found.entries, found.sources),
            rate=rate,
            next=found.next,
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
