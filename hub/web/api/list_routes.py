"""``/api/watched-lists``: lists of feeds elsewhere that the hub keeps in step with."""

from __future__ import annotations

from http import HTTPStatus
from typing import Self

from starlette.requests import Request
from starlette.responses import Response

from hub.services import ListWatchService
from hub.services.feed_requests import LONGEST_WAIT
from hub.services.list_watching import WatchedList
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
from storage.records import (
    AuditTarget,
    ListWatch,
    ListWatchId,
    NewListWatch,
    TokenScope,
)


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


class ListWatchRoutes(Routes):
    tag = "lists"

    def __init__(self, watches: ListWatchService) -> None:
        self._watches = watches

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
        description="`201`, or `200` if it is watched already. While it is being read,"
        " `reading` says how far that is.",
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
