"""Pages of a feed's entries, of its document as it is parsed, and its credentials."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from hub.runtime.clock import Clock
from hub.services import FeedDocumentService, FeedService
from hub.services.feed_requests import EditFeed, read_credentials
from hub.web.admin.page_access import OperatorPages, PageAccess, redirect, viewer_of
from hub.web.api.feed_document_routes import BEFORE, query_before
from hub.web.operation import HTML, Operation
from hub.web.page_rendering import render_page
from hub.web.request_input import path_id
from protocols.protocol_errors import InvalidValue
from storage.records import Credentials, FeedId

ROWS: Final = 50
"""Entries on a page."""
SHOWN_RULES: Final = 100
"""Entries of a document that are shown."""


class FeedDocumentPages(OperatorPages):
    def __init__(
        self,
        access: PageAccess,
        documents: FeedDocumentService,
        feeds: FeedService,
        clock: Clock,
    ) -> None:
        super().__init__(access)
        self._documents = documents
        self._feeds = feeds
        self._clock = clock

    @Operation(
        method="GET",
        path="/admin/feeds/{id}/entries",
        id="get_feed_entries_page",
        summary="The entries of a feed, with their revisions",
        answers={200: {HTML: str}, 303: None},
        query=(BEFORE,),
        problems=(403, 404, 422, 429, 503),
    )
    async def entries(self, request: Request) -> Response:
        feed_id, before = _feed_id(request), query_before(request)
        found = await self._documents.entries(feed_id, ROWS, before)
        return render_page(
            "feed_entries.html",
            section="Feeds",
            viewer=viewer_of(request),
            now=self._clock.now(),
            found=found,
            is_first=before is None,
        )

    @Operation(
        method="POST",
        path="/admin/feeds/{id}/parse",
        id="parse_feed_of_page",
        summary="Fetch a feed's document, and show how it is read",
        answers={200: {HTML: str}, 303: None},
        problems=(403, 404, 409, 429, 503),
    )
    async def explain(self, request: Request) -> Response:
        """Show how the document is read; it changes nothing about the feed."""
        found = await self._documents.explain(_feed_id(request))
        return render_page(
            "feed_document.html",
            section="Feeds",
            viewer=viewer_of(request),
            now=self._clock.now(),
            found=found,
            most=SHOWN_RULES,
        )

    @Operation(
        method="POST",
        path="/admin/feeds/{id}/credentials",
        id="set_credentials_of_page",
        summary="Set or remove the credentials that a feed is fetched with",
        answers={303: None},
        problems=(403, 404, 409, 422, 429, 503),
    )
    async def credentials(self, request: Request) -> Response:
        """Replace all credentials of the feed by those given, or remove them."""
        feed_id, form = _feed_id(request), viewer_of(request).form
        given = Credentials()
        if form.get("what") != "remove":
            user, password = form.get("user", ""), form.get("password", "")
            basic = f"{user}:{password}" if user or password else ""
            headers = _headers(form.get("headers", ""))
            found = read_credentials(basic, headers)
            if found is None:
                raise InvalidValue("user", "a user with a password, or headers")
            given = found
        await self._feeds.edit(feed_id, EditFeed(credentials=given))
        done = "open" if given == Credentials() else "credentials"
        return redirect(f"/admin/feeds/{feed_id}?done={done}")


def _feed_id(request: Request) -> FeedId:
    return FeedId(path_id(request, "feed"))


def _headers(written: str) -> dict[str, str]:
    """Headers written one a line, as ``Name: value``. Raises `InvalidValue`."""
    headers = dict[str, str]()
    for line in filter(None, map(str.strip, written.splitlines())):
        name, separator, value = line.partition(":")
        if not separator:
            raise InvalidValue("headers", "lines such as Authorization: Bearer …")
        headers[name.strip()] = value.strip()
    return headers
