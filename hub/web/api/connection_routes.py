"""``/api/connections``: the live connections, and closing one of them."""

from __future__ import annotations

import re
from typing import Final, Self

from starlette.requests import Request
from starlette.responses import Response

from hub.services.connection_reports import (
    ConnectionFilter,
    ConnectionPlace,
    ConnectionReport,
    ConnectionService,
    ConnectionSort,
    Transport,
)
from hub.web.json_output import JsonObject, Time, json_response
from hub.web.operation import PAGE, ApiOperation, Parameter, Routes
from hub.web.request_input import (
    DEFAULT_PAGE,
    LARGEST_PAGE,
    path_id,
    query_choice,
    query_number,
)
from protocols.protocol_errors import InvalidValue
from storage.records import TokenScope

CONNECTION_LIST: Final = (
    Parameter(name="transport", help="how it is connected", choices=tuple(Transport)),
    Parameter(name="topic", help="a topic that it listens to"),
    Parameter(name="account", help="whose token it showed; anonymous: none"),
    Parameter(name="address", help="where it is from"),
    Parameter(
        name="sort",
        help="the order: from the oldest (id), the newest, or from the most",
        choices=tuple(ConnectionSort),
    ),
    Parameter(name="cursor", help="next of the page before"),
    *(each for each in PAGE if each.name == "limit"),
)
_PLACE: Final = re.compile(r"(-?[0-9]{1,18}):(-?[0-9]{1,18})")


class ConnectionJson(JsonObject):
    """A live connection.

    ``topics`` are the first 20 of ``topic_count``. ``queue_bytes`` wait to be taken by
    the client. ``messages`` and ``bytes`` were written to it. ``behind``: what it
    missed is still being sent.
    """

    id: int
    transport: Transport
    account: str
    address: str
    opened_at: Time
    topics: list[str]
    topic_count: int
    queue_bytes: int
    messages: int
    bytes: int
    behind: bool

    @classmethod
    def of_report(cls, report: ConnectionReport) -> Self:
        return cls.of(
            report,
            topics=list(report.topics),
            queue_bytes=report.queue,
            behind=report.is_behind,
        )


class ConnectionsJson(JsonObject):
    """A page of connections.

    ``total``: how many the filter finds; ``next``: the cursor of the following page.
    """

    connections: list[ConnectionJson]
    total: int
    next: str | None


class ConnectionRoutes(Routes):
    tag = "streams"

    def __init__(self, connections: ConnectionService) -> None:
        self._connections = connections

    @ApiOperation(
        method="GET",
        path="/connections",
        id="list_connections",
        scope=TokenScope.ADMIN,
        summary="List live connections: websockets, event streams, long polls",
        description="Each has its `id`, `transport` (`websocket`, `sse`, `stream`,"
        " `poll`), `account` (`anonymous` without a token), `address`, `opened_at`,"
        " the first 20 `topics` of `topic_count`, `queue_bytes` that wait to be taken,"
        " `messages` and `bytes` that were sent, `behind` while it is sent what it"
        " missed. `cursor` is the `next` of the page before.",
        answers={200: ConnectionsJson},
        query=CONNECTION_LIST,
        problems=(422,),
    )
    async def page(self, request: Request) -> Response:
        found = self._connections.page(
            query_connections(request),
            query_choice(request, "sort", ConnectionSort) or ConnectionSort.ID,
            after=query_place(request),
            limit=query_number(request, "limit", DEFAULT_PAGE, LARGEST_PAGE, least=1),
        )
        return json_response(
            ConnectionsJson(
                connections=list(map(ConnectionJson.of_report, found.connections)),
                total=found.total,
                next=place_text(found.next),
            )
        )

    @ApiOperation(
        method="DELETE",
        path="/connections/{id}",
        id="disconnect",
        scope=TokenScope.ADMIN,
        summary="Send a live connection away",
        description="By the close code 3502.",
        answers={200: ConnectionJson},
        problems=(404,),
    )
    async def disconnect(self, request: Request) -> Response:
        gone = self._connections.disconnect(path_id(request, "connection"))
        return json_response(ConnectionJson.of_report(gone))


def query_connections(request: Request) -> ConnectionFilter:
    """The filter of the query. Raises `InvalidValue`."""
    query = request.query_params
    return ConnectionFilter(
        transport=query_choice(request, "transport", Transport),
        topic=query.get("topic", "").strip(),
        account=query.get("account", "").strip(),
        address=query.get("address", "").strip(),
    )


def query_place(request: Request) -> ConnectionPlace | None:
    """Where a page of connections begins; None: the first. Raises `InvalidValue`."""
    text = request.query_params.get("cursor")
    if text is None:
        return None
    found = _PLACE.fullmatch(text)
    if found is None:
        raise InvalidValue("cursor", "next of the page before", text)
    return int(found[1]), int(found[2])


def place_text(place: ConnectionPlace | None) -> str | None:
    return None if place is None else f"{place[0]}:{place[1]}"
