"""Pages for readers: ``/``, ``/search``, ``/topics``, one topic, and ``/about``.

They are complete without scripts; a script adds new entries of a topic as they come.
"""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from hub.services.reader_pages import (
    LEAST_PART,
    FoundEntries,
    ReaderService,
    TopicList,
)
from hub.services.service_errors import SearchOff
from hub.web.api.search_routes import SEARCH_CURSOR, query_search_cursor
from hub.web.operation import HTML, Operation, Parameter, Routes
from hub.web.page_rendering import (
    answer_unless_known,
    asset_url,
    icon_answer,
    render_page,
)
from hub.web.request_input import LARGEST_ID, path_id, query_number
from protocols.protocol_errors import InvalidValue
from storage.records import FeedId

EXAMPLE_TOPIC: Final = "https://example.org/feed.xml"
"""The example topic that a hub without a public topic shows."""
LONGEST_SEARCH: Final = 500
"""Most characters of a search."""
_BEFORE: Final = Parameter(
    name="before",
    help="the topics after this one, by its id",
    kind="integer",
    least=1,
    largest=LARGEST_ID,
)


def _page(
    path: str,
    id: str,
    summary: str,
    *query: Parameter,
    problems: tuple[int, ...] = (429, 503),
) -> Operation:
    return Operation(
        method="GET",
        path=path,
        id=id,
        summary=summary,
        query=query,
        answers={200: {HTML: str}, 304: None},
        problems=problems,
    )


class ReaderRoutes(Routes):
    tag = "pages"

    def __init__(self, readers: ReaderService) -> None:
        self._readers = readers

    @_page("/", "get_front_page", "A page for readers: the newest public entries")
    async def newest(self, request: Request) -> Response:
        newest = await self._readers.newest()
        return self._answer(
            request,
            "front.html",
            section="Newest",
            entries=newest.entries,
            example=newest.topic or EXAMPLE_TOPIC,
        )

    @_page(
        "/search",
        "get_search_page",
        "A page of public entries and topics that match",
        Parameter(
            name="q",
            help="words, in the language of track queries; a part of a topic's title"
            " or URL",
            longest=LONGEST_SEARCH,
        ),
        SEARCH_CURSOR,
        problems=(422, 429, 503),
    )
    async def search(self, request: Request) -> Response:
        text = request.query_params.get("q", "").strip()
        if len(text) > LONGEST_SEARCH:
            raise InvalidValue("q", f"at most {LONGEST_SEARCH} characters")
        below = query_search_cursor(request)
        found, refused = FoundEntries(entries=(), line=""), ""
        topics = TopicList(topics=(), next=None)
        if text:
            try:
                found = await self._readers.search(text, below)
            except (InvalidValue, SearchOff) as error:
                refused = str(error)
        if len(text) >= LEAST_PART:
            topics = await self._readers.topics(text)
        return self._answer(
            request,
            "search.html",
            section="Newest",
            text=text,
            found=found,
            is_first=below is None,
            refused=refused,
            topics=topics,
        )

    @_page(
        "/topics",
        "get_topics_page",
        "A page of the public topics, the latest added first",
        Parameter(
            name="search",
            help=f"a part of the URL or title, of {LEAST_PART} characters or more",
            longest=LONGEST_SEARCH,
        ),
        _BEFORE,
        problems=(422, 429, 503),
    )
    async def topics(self, request: Request) -> Response:
        text = request.query_params.get("search", "").strip()
        if text and not LEAST_PART <= len(text) <= LONGEST_SEARCH:
            expected = f"{LEAST_PART} to {LONGEST_SEARCH} characters"
            raise InvalidValue("search", expected)
        before = query_number(request, "before", 0, LARGEST_ID)
        topics = await self._readers.topics(text, FeedId(before) if before else None)
        return self._answer(
            request,
            "topics.html",
            section="Topics",
            text=text,
            topics=topics,
            is_first=not before,
        )

    @_page(
        "/topics/{id}",
        "get_topic_page",
        "A page of a public topic, which new entries reach as they arrive",
        Parameter(name="before", help="the begin of a page, from the link to it"),
        problems=(404, 422, 429, 503),
    )
    async def topic(self, request: Request) -> Response:
        before = request.query_params.get("before", "")
        view = await self._readers.topic(FeedId(path_id(request, "topic")), before)
        return self._answer(
            request,
            "topic.html",
            etag=f"{view.etag}-{_assets()}",
            section="Topics",
            view=view,
            is_first=not before,
        )

    @_page(
        "/about",
        "get_about_page",
        "A page for publishers: who requests their feeds",
        problems=(429,),
    )
    async def about(self, request: Request) -> Response:
        """Show what publishers find at the address in the hub's User-Agent."""
        return self._answer(
            request, "about.html", section="About", about=self._readers.about
        )

    @Operation(
        method="GET",
        path="/favicon.svg",
        id="get_favicon_svg",
        summary="The icon of the pages",
        answers={200: {"image/svg+xml": str}},
    )
    async def icon(self, request: Request) -> Response:
        return icon_answer()

    def _answer(
        self, request: Request, template: str, *, etag: str = "", **values: Any
    ) -> Response:
        page = render_page(template, endpoints=self._readers.endpoints, **values)
        return answer_unless_known(request, bytes(page.body), etag)


def _assets() -> str:
    """Return a version that changes with the files that a page loads."""
    return asset_url("admin.css").split(".")[1] + asset_url("admin.js").split(".")[1]
