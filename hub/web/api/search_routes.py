"""``/api/search``: stored entries that match a query, a page at a time."""

from __future__ import annotations

from typing import Self

from starlette.requests import Request
from starlette.responses import Response

from hub.services import SearchService
from hub.services.entry_search import SearchPage
from hub.web.authentication import principal_of
from hub.web.json_output import JsonObject, Time, json_response
from hub.web.operation import ApiOperation, Parameter, Routes
from hub.web.request_input import LARGEST_ID, query_number
from protocols.model import Entry
from protocols.protocol_errors import InvalidValue
from storage.packing import unpack
from storage.records import EntryId, FeedId, StoredEntry, StoredFeed, TokenScope

FOUND_AT_ONCE = 50
"""Entries of a page, unless another number is requested."""
MOST_FOUND = 100
LONGEST_QUERY = 2_000
SEARCH_CURSOR = Parameter(
    name="cursor",
    help="next of the page before",
    kind="integer",
    least=1,
    largest=LARGEST_ID,
)


def query_search_cursor(request: Request) -> int | None:
    """Where a page of what was found begins. Raises `InvalidValue`."""
    return query_number(request, "cursor", 0, LARGEST_ID, least=1) or None


class FoundEntryJson(JsonObject):
    """An entry that matches. ``guid``: what its feed calls it; ``url``: "" if it links
    nowhere; ``feed_url``: the address of its feed."""

    id: EntryId
    guid: str
    title: str
    url: str
    feed: FeedId
    feed_title: str
    feed_url: str
    published: Time | None
    updated: Time | None

    @classmethod
    def of_entry(cls, stored: StoredEntry, feed: StoredFeed) -> Self:
        entry = unpack(stored.body, Entry)
        links = (each.href for each in entry.links if each.rel == "alternate")
        return cls.of(
            entry,
            id=stored.id,
            guid=entry.id,
            url=next(links, ""),
            feed=feed.id,
            feed_title=feed.title,
            feed_url=feed.url,
        )


class FoundEntriesJson(JsonObject):
    """A page of entries that match, newest first; ``next`` is the ``cursor`` of the
    next page, null after the last. A page may be short, or empty, without being the
    last.

    ``said``: how many were found, and how far was looked, in words; ``looked_at``:
    entries with the words of the query that were examined for this page, back to the
    date ``reached``, null if there was none.
    """

    entries: list[FoundEntryJson]
    next: int | None
    said: str
    looked_at: int
    reached: Time | None

    @classmethod
    def of_page(cls, page: SearchPage) -> Self:
        feeds = {each.feed.id: each.feed for each in page.sources}
        return cls.of(
            page,
            entries=[
                FoundEntryJson.of_entry(each, feeds[each.feed_id])
                for each in page.entries
            ],
            said=page.line,
        )


class SearchRoutes(Routes):
    tag = "documents"

    def __init__(self, search: SearchService) -> None:
        self._search = search

    @ApiOperation(
        method="GET",
        path="/search",
        id="search_entries",
        scope=TokenScope.RETRIEVE,
        summary="Stored entries that match a track query, newest first",
        description="Those that the account may read. For a page at most 2,000 entries"
        " with the words of the query are examined, for five seconds: `said` tells how"
        " far was looked, and `next` goes on from there.",
        answers={200: FoundEntriesJson},
        query=(
            Parameter(
                name="query",
                help="words, in the language of track queries",
                longest=LONGEST_QUERY,
                is_required=True,
            ),
            Parameter(
                name="limit",
                help="the most entries of a page",
                kind="integer",
                default=FOUND_AT_ONCE,
                least=1,
                largest=MOST_FOUND,
            ),
            SEARCH_CURSOR,
        ),
        problems=(403, 422, 503),
    )
    async def search(self, request: Request) -> Response:
        query = request.query_params.get("query", "").strip()
        if not query:
            raise InvalidValue("query", "words to search for")
        page = await self._search.find(
            principal_of(request),
            query,
            query_number(request, "limit", FOUND_AT_ONCE, MOST_FOUND, least=1),
            query_search_cursor(request),
        )
        return json_response(FoundEntriesJson.of_page(page))
