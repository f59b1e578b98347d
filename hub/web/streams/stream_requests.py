"""Requests to ``/stream``: their topics, their cursor, and whose token they show."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, Request

from hub.live.live_connections import Client, QuotaExceeded, TooManyConnections
from hub.live.live_stream import LiveStream
from hub.services.token_authentication import Principal
from hub.web.authentication import Authenticator, is_foreign, refuse_in_query
from hub.web.problems import Problem
from protocols.cursor import read_cursor
from protocols.live.live_messages import BodyFormat, Subscribe, WantedUpdates
from protocols.live.message_decoding import read_choice
from protocols.protocol_errors import InvalidValue

STREAM_PATH = "/stream"
UNREADABLE_CURSOR = "0-0"
"""In place of a Last-Event-ID that is no cursor: of no epoch, it leads to a reset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRequest:
    """The topics of the query, all with one cursor, format and choice of updates."""

    topics: tuple[str, ...]
    cursor: str | None
    format: BodyFormat
    updates: WantedUpdates

    def requests(self) -> list[Subscribe]:
        return [
            Subscribe(
                topic=topic,
                cursor=self.cursor,
                format=self.format,
                updates=self.updates,
            )
            for topic in self.topics
        ]


def read_stream_request(connection: HTTPConnection) -> StreamRequest:
    """Read the query; an empty parameter counts as absent. Raises `InvalidValue` naming
    the parameter."""
    query = connection.query_params
    cursor = query.get("cursor") or None
    if cursor is not None:
        read_cursor(cursor)
    return StreamRequest(
        topics=tuple(filter(None, query.getlist("topic"))),
        cursor=cursor,
        format=read_choice("format", query.get("format") or "json", BodyFormat),
        updates=read_choice("updates", query.get("updates") or "fresh", WantedUpdates),
    )


def last_event_of(request: Request) -> str:
    """The cursor from which an EventSource reconnects; "" when it does not.

    A browser sends its ``Last-Event-ID`` by itself, and an error would lock it out; so
    what is no cursor leads to a reset.
    """
    last = request.headers.get("last-event-id", "")
    try:
        if last:
            read_cursor(last)
    except InvalidValue:
        return UNREADABLE_CURSOR
    return last


def refuse_without_room(stream: LiveStream, client: Client) -> None:
    """Raise `Problem` 503 if the hub is full, and 429 if the client has too many
    connections."""
    try:
        stream.check_room(client)
    except QuotaExceeded as error:
        raise Problem(
            HTTPStatus.TOO_MANY_REQUESTS, str(error), headers={"Retry-After": "5"}
        ) from error
    except TooManyConnections as error:
        raise Problem(
            HTTPStatus.SERVICE_UNAVAILABLE, str(error), headers={"Retry-After": "5"}
        ) from error


async def find_principal(
    connection: HTTPConnection, authenticator: Authenticator
) -> Principal | None:
    """Return the principal whose token a request shows; None if it shows none.

    The token is in the ``Authorization`` header or, because an EventSource cannot set
    one, in the parameter ``authorization``, as base64 of ``user:token``. The header is
    refused with a foreign ``Origin``, since browsers send the Basic credentials they
    know to any site. The administrator's token is refused in the parameter. Raises
    `Problem` and `StorageError`.
    """
    offered = _parameter(connection, "authorization")
    if offered and not offered.isascii():
        raise Problem(
            HTTPStatus.UNAUTHORIZED, "authorization: expected base64 of user:token"
        )
    if offered:
        headers = Headers({"authorization": f"Basic {''.join(offered.split())}"})
        principal = await authenticator.identify(headers)
        if principal is not None:
            refuse_in_query(principal)
        return principal
    if "authorization" not in connection.headers:
        return None
    if is_foreign(connection):
        raise Problem(
            HTTPStatus.FORBIDDEN,
            "requests of another site may not use an Authorization header",
        )
    return await authenticator.identify(connection.headers)


def _parameter(connection: HTTPConnection, name: str) -> str | None:
    """A parameter of the query; most of the requests that are counted have no query."""
    has_query = bool(connection.scope["query_string"])
    return connection.query_params.get(name) if has_query else None
