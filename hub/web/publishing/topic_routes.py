"""``/myPublicFeeds.opml`` and ``/topics/{id}``: public feeds, for whoever asks."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hub.services.public import DEFAULT_PAGE, PreparedPage, PublicService
from hub.web.conditions import is_current, not_modified, validators
from hub.web.decoding import path_id, query_whole
from protocols.opml import OPML_TYPE
from protocols.topic_pages import TopicFormat
from storage.records import EntryId, FeedId

OPEN_TO_PAGES = {
    "Access-Control-Allow-Origin": "*",
    "X-Content-Type-Options": "nosniff",
}
CACHED = "public, max-age=60"


class PublicRoutes:
    def __init__(self, public: PublicService) -> None:
        self._public = public

    def routes(self) -> list[Route]:
        return [
            Route("/myPublicFeeds.opml", self.list_feeds, methods=["GET"]),
            Route("/topics/entries/{id}", self.show_entry, methods=["GET"]),
            *(
                Route(
                    f"/topics/{{id}}.{format}",
                    partial(self.show, format),
                    methods=["GET"],
                )
                for format in TopicFormat
            ),
        ]

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

    async def show_entry(self, request: Request) -> Response:
        """What is at the address of an entry that has none of its own."""
        prepared = await self._public.page_of(EntryId(path_id(request, "entry")))
        return await self._answer(request, prepared, TopicFormat.ATOM)

    async def show(self, format: TopicFormat, request: Request) -> Response:
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
    """A topic says in its headers, too, where its hub is (WebSub 4), and where the same
    is in other formats."""
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
