"""``/api/lists`` and ``/api/watched-lists``: lists of feeds elsewhere, read once or
kept in step with."""

from __future__ import annotations

from http import HTTPStatus
from typing import Self

from starlette.requests import Request
from starlette.responses import Response

from hub.services import ListWatchService
from hub.services.feed_requests import LONGEST_WAIT
from hub.services.list_watching import WatchedList
from hub.services.opml_lists import FeedListService
from hub.web.api.feed_json import WalkedListsJson
from hub.web.audited_requests import name_target
from hub.web.json_output import JsonObject, Time, json_response, next_after
from hub.web.operation import PAGE, ApiOperation, Parameter, Routes
from hub.web.request_input import (
    RequestBody,
    path_id,
    query_number,
    query_page,
    read_body,
)
from protocols.opml import DEEPEST, MOST_LISTS
from protocols.protocol_errors import InvalidValue
from storage.records import (
    AuditTarget,
    ListWatch,
    ListWatchId,
    NewListWatch,
    TokenScope,
)

LISTED_AT_ONCE = 5_000
"""The most feeds of lists in one answer."""


class ListsToRead(RequestBody):
    """The body of ``POST /api/lists``.

    ``depth``: how deep these lists are included in others; ``skip``: how many feeds the
    parts before have had.
    """

    urls: list[str]
    depth: int = 0
    skip: int = 0


class ListToWatch(RequestBody):
    """The body of ``POST /api/watched-lists``; ``category``: for feeds in no folder."""

    url: str
    category: str = ""
    private: bool = False


class ListReadingJson(JsonObject):
    """How many feeds are changed so far, and of how many; 0 until that is known."""

    done: int
    total: int


class WatchedListJson(JsonObject):
    """A watched list, and what came of it.

    ``reading``: null unless it is being read. ``feeds``: how many it has; ``refused``:
    how many of them could not be added. ``added``, ``removed``, ``kept``: how many
    feeds its last change added, removed, or left though the list no longer has them.
    """

    id: int
    url: str
    category: str
    private: bool
    created_at: Time
    last_read: Time | None
    next_read: Time
    reading: ListReadingJson | None
    error: str
    failures: int
    feeds: int
    refused: int
    changed_at: Time | None
    added: int
    removed: int
    kept: int

    @classmethod
    def of_watch(cls, watch: ListWatch, **more: object) -> Self:
        return cls.of(watch, last_read=watch.read_at, next_read=watch.due, **more)

    @classmethod
    def of_list(cls, found: WatchedList) -> Self:
        reading = ListReadingJson.of_any(found.reading)
        return cls.of_watch(found.watch, reading=reading)


class WatchedListsJson(JsonObject):
    """A page of watched lists; ``next`` is the ``after`` of the following one."""

    lists: list[WatchedListJson]
    next: int | None


class FeedListRoutes(Routes):
    tag = "lists"

    def __init__(self, lists: FeedListService, watches: ListWatchService) -> None:
        self._lists = lists
        self._watches = watches

    @ApiOperation(
        method="POST",
        path="/lists",
        id="read_lists",
        scope=TokenScope.ADMIN,
        summary="Read lists of feeds in OPML, including nested lists",
        description="At 1 to 50 `urls`, with the lists they include, 5,000 feeds at a"
        " time. The same request with `next` as `skip` gives the next page, of the"
        " same reading for ten minutes. `depth` (0 to 5, default 0): how deeply these"
        " lists are nested themselves. Adds nothing; takes at most 50 s.",
        only_reads=True,
        answers={200: WalkedListsJson},
        body=ListsToRead(urls=["https://example.org/feeds.opml"]),
    )
    async def read_lists(self, request: Request) -> Response:
        body = await read_body(request, ListsToRead)
        if not 1 <= len(body.urls) <= MOST_LISTS:
            raise InvalidValue("urls", f"1 to {MOST_LISTS} of them")
        if not 0 <= body.depth <= DEEPEST:
            raise InvalidValue("depth", f"0 to {DEEPEST}")
        if body.skip < 0:
            raise InvalidValue("skip", "a number of feeds")
        walk = await self._lists.part(body.urls, depth=body.depth, skip=body.skip)
        return json_response(
            WalkedListsJson.of_walk(walk, skip=body.skip, length=LISTED_AT_ONCE)
        )

    @ApiOperation(
        method="GET",
        path="/watched-lists",
        id="list_watched_lists",
        scope=TokenScope.ADMIN,
        summary="List the watched lists of feeds",
        answers={200: WatchedListsJson},
        query=PAGE,
        problems=(422,),
    )
    async def page(self, request: Request) -> Response:
        after, limit = query_page(request)
        found = await self._watches.page(after=ListWatchId(after), limit=limit)
        return json_response(
            WatchedListsJson(
                lists=[WatchedListJson.of_list(each) for each in found],
                next=next_after([each.watch.id for each in found], limit),
            )
        )

    @ApiOperation(
        method="POST",
        path="/watched-lists",
        id="watch_list",
        scope=TokenScope.ADMIN,
        summary="Watch a list of feeds in OPML, and read it now",
        description="The list at `url`; `category` is for feeds outside folders. 201,"
        " or 200 if it is watched already; 409 if that is with another `category` or"
        " not privately. Waits up to `wait` seconds (0 to 20, default 20) until it has"
        " been read. The answer has `id`, `url`, `category`, `private`, `created_at`,"
        " `last_read` (null before), `next_read`, `reading` (null, or `done` of"
        " `total` feeds changed so far), `error`, `failures` (in a row), `feeds`, and"
        " how many of these were `refused`; of the last change `changed_at`, and how"
        " many feeds were `added`, `removed`, or `kept` though they left the list.",
        answers={201: WatchedListJson, 200: WatchedListJson},
        query=(
            Parameter(
                name="wait",
                help="seconds to wait until it has been read",
                kind="integer",
                default=int(LONGEST_WAIT),
                least=0,
                largest=int(LONGEST_WAIT),
            ),
        ),
        body=ListToWatch(url="https://example.org/feeds.opml", category="partners"),
        problems=(409,),
    )
    async def watch(self, request: Request) -> Response:
        wait = query_number(request, "wait", int(LONGEST_WAIT), int(LONGEST_WAIT))
        body = await read_body(request, ListToWatch)
        new = NewListWatch(url=body.url, category=body.category, private=body.private)
        watch_id, is_new = await self._watches.watch(new)
        name_target(request, AuditTarget.WATCHED_LIST, watch_id, body.url)
        found = await self._watches.wait(watch_id, wait)
        status = HTTPStatus.CREATED if is_new else HTTPStatus.OK
        return json_response(WatchedListJson.of_list(found), status)

    @ApiOperation(
        method="GET",
        path="/watched-lists/{id}",
        id="get_watched_list",
        scope=TokenScope.ADMIN,
        summary="Show one watched list, with its last result",
        answers={200: WatchedListJson},
        problems=(404,),
    )
    async def show(self, request: Request) -> Response:
        found = await self._watches.get(_watch_id(request))
        return json_response(WatchedListJson.of_list(found))

    @ApiOperation(
        method="DELETE",
        path="/watched-lists/{id}",
        id="unwatch_list",
        scope=TokenScope.ADMIN,
        summary="Stop watching a list; its feeds stay",
        answers={200: WatchedListJson},
        problems=(404,),
    )
    async def unwatch(self, request: Request) -> Response:
        watch = await self._watches.unwatch(_watch_id(request))
        return json_response(WatchedListJson.of_watch(watch, reading=None))


def _watch_id(request: Request) -> ListWatchId:
    return ListWatchId(path_id(request, "watched list"))
