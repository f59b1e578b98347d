"""``/myPublicFeeds.opml`` and ``/topics/{id}``: public feeds, without a token."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from hub.services.public_pages import (
    DEFAULT_PAGE,
    LONGEST_PAGE,
    PreparedPage,
    PublicService,
)
from hub.web.not_modified import is_current, not_modified, validators
from hub.web.operation import Operation, Parameter, Routes
from hub.web.request_input import path_id, query_whole
from protocols.opml import OPML_TYPE
from protocols.topic_pages import TopicFormat
from storage.records import EntryId, FeedId

OPEN_TO_PAGES = {
    "Access-Control-Allow-Origin": "*",
    "X-Content-Type-Options": "nosniff",
}
CACHED = "public, max-age=60"


_PAGE_QUERY = (
    Parameter(name="before", help="the begin of a page, from the link to it"),
    Parameter(
        name="limit",
        help=f"entries; cut to 1 to {LONGEST_PAGE}",
        kind="integer",
        default=DEFAULT_PAGE,
        least=0,
    ),
)


def _page_of_topic(format: TopicFormat, id: str, shape: type[Any]) -> Operation:
    return Operation(
        method="GET",
        path=f"/topics/{{id}}.{format}",
        id=id,
        summary=f"A public feed as this hub has it, newest first: {format}",
        description="In pages that are linked by rel=next; conditional requests"
        " are answered. It may be subscribed to.",
        query=_PAGE_QUERY,
        answers={200: {format.media_type.partition(";")[0]: shape}, 304: None},
        headers={200: {"Link": "the hub, this page, and the next one"}},
        problems=(404, 422, 429, 503),
    )


class TopicRoutes(Routes):
    tag = "topics"

    def __init__(self, public: PublicService) -> None:
        self._public = public

    @Operation(
        method="GET",
        path="/myPublicFeeds.opml",
        id="get_public_feeds",
        summary="The public feeds, as OPML 2.0",
        answers={200: {"text/x-opml": str}, 304: None},
        problems=(429, 503),
    )
    async def list_feeds(self, request: Request) -> Response:
        document = await self._public.list_feeds()
        headers = {
            **validators(document.etag, None),
            **OPEN_TO_PAGES,
            "Cache-Control": CACHED,
        }
        if is_current(request, document.etag, None):
            return not_modified(headers)
        return Response(document.body, headers={**headers, "Content-Type": OPML_TYPE})

    @Operation(
        method="GET",
        path="/topics/entries/{id}",
        id="get_entry_page",
        summary="An entry of a public feed without a link of its own",
        description="The page of its topic with only this entry.",
        answers={
            200: {TopicFormat.ATOM.media_type.partition(";")[0]: str},
            304: None,
        },
        problems=(404, 429, 503),
    )
    async def show_entry(self, request: Request) -> Response:
        """Show an entry that has no address of its own, and so got this one."""
        prepared = await self._public.page_of(EntryId(path_id(request, "entry")))
        return await self._answer(request, prepared, TopicFormat.ATOM)

    @_page_of_topic(TopicFormat.ATOM, "get_topic_as_atom", str)
    @_page_of_topic(TopicFormat.NORMALIZED, "get_topic_normalized", dict)
    @_page_of_topic(TopicFormat.JSON_FEED, "get_topic_as_json_feed", dict)
    async def show(self, request: Request) -> Response:
        path: str = request.scope["path"]
        format = next(each for each in TopicFormat if path.endswith(f".{each}"))
        feed_id = FeedId(path_id(request, "topic"))
        prepared = await self._public.page(
            feed_id,
            format,
            before=request.query_params.get("before", ""),
            limit=query_whole(request, "limit", DEFAULT_PAGE),
        )
        return await self._answer(request, prepared, format)

    async def _answer(
        self, request: Request, prepared: PreparedPage, format: TopicFormat
    ) -> Response:
        headers = _headers(prepared, format)
        if is_current(request, prepared.etag, prepared.modified):
            return not_modified(headers)
        body = await self._public.render(prepared, format)
        return Response(body, headers={**headers, "Content-Type": format.media_type})


def _headers(prepared: PreparedPage, format: TopicFormat) -> dict[str, str]:
    """Headers of a topic, which name its hub (WebSub 4) and its other formats too."""
    page = prepared.page
    links = [f'<{page.hub}>; rel="hub"', f'<{page.self_url}>; rel="self"']
    if page.next_url:
        links.append(f'<{page.next_url}>; rel="next"')
    root = page.url.removesuffix(format)
    links += [
        f'<{root}{each}>; rel="alternate"; type="{each.media_type.partition(";")[0]}"'
        for each in TopicFormat
        if each is not format
    ]
    return {
        **validators(prepared.etag, prepared.modified),
        **OPEN_TO_PAGES,
        "Cache-Control": CACHED,
        "Link": ", ".join(links),
    }
