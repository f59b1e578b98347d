"""Errors of the API: ``application/problem+json`` (RFC 9457).

``field`` names the parameter or body member at fault, if there is one.
"""

from __future__ import annotations

from http import HTTPStatus

import msgspec
import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hub.services.service_errors import (
    AddressRefused,
    Conflict,
    DeliveryUnderWay,
    Gone,
    HubClosed,
    NotAllowed,
    NotConfirmed,
    NotSigned,
    SearchOff,
    TooManyWaiting,
)
from hub.web.json_output import JsonObject
from hub.web.problem_types import ProblemType, type_of_status
from protocols.protocol_errors import InvalidValue
from storage.errors import (
    DestinationTaken,
    NotFound,
    StorageError,
    SubscriptionPaused,
)

STORAGE_RETRY_SECONDS = 5
"""``Retry-After`` while storage fails; the hub retries its own work as often."""
PROBLEM_TYPE = "application/problem+json"
log = structlog.get_logger()


class Problem(Exception):
    """A request that cannot be answered as asked."""

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        *,
        field: str = "",
        headers: dict[str, str] | None = None,
        type: ProblemType | None = None,
    ) -> None:
        """Without a ``type``, the problem has the type of its status."""
        self.type = type or type_of_status(status)
        self.status = status
        self.detail = detail
        self.field = field
        self.headers = headers
        super().__init__(detail)


class ProblemJson(JsonObject):
    """An error (RFC 9457). ``field`` names what is at fault, if one thing is."""

    type: str
    status: int
    title: str
    detail: str
    field: str | msgspec.UnsetType = msgspec.UNSET


def problem_response(problem: Problem) -> Response:
    document = ProblemJson(
        type=problem.type.url,
        status=problem.status.value,
        title=problem.status.phrase,
        detail=problem.detail,
        field=problem.field or msgspec.UNSET,
    )
    return Response(
        msgspec.json.encode(document),
        status_code=problem.status,
        headers=problem.headers,
        media_type=PROBLEM_TYPE,
    )


_TYPES: dict[type[Exception], ProblemType] = {
    AddressRefused: ProblemType.ADDRESS_REFUSED,
    HubClosed: ProblemType.HUB_CLOSED,
    NotAllowed: ProblemType.NOT_ALLOWED,
    NotConfirmed: ProblemType.NOT_CONFIRMED,
    NotSigned: ProblemType.NOT_SIGNED,
    SearchOff: ProblemType.SEARCH_OFF,
    TooManyWaiting: ProblemType.TOO_MANY_WAITING,
}
_STATUSES: tuple[tuple[tuple[type[Exception], ...], HTTPStatus], ...] = (
    ((HubClosed, NotSigned, SearchOff), HTTPStatus.FORBIDDEN),
    (
        (InvalidValue, AddressRefused, NotAllowed, NotConfirmed),
        HTTPStatus.UNPROCESSABLE_ENTITY,
    ),
    ((Gone,), HTTPStatus.GONE),
    ((NotFound,), HTTPStatus.NOT_FOUND),
    ((Conflict, DestinationTaken, SubscriptionPaused), HTTPStatus.CONFLICT),
    ((TooManyWaiting, StorageError), HTTPStatus.SERVICE_UNAVAILABLE),
)
"""Statuses by kinds of errors; the first that fits counts."""


def as_problem(error: Exception) -> Problem:
    """The problem that an error is answered with. A ``field`` of the error is kept."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, HTTPException):
        return _of_http(error)
    for kinds, status in _STATUSES:
        if isinstance(error, kinds):
            field, headers = getattr(error, "field", ""), _headers_of(error, status)
            return Problem(
                status,
                str(error),
                field=field,
                headers=headers,
                type=_TYPES.get(type(error)),
            )
    return Problem(
        HTTPStatus.INTERNAL_SERVER_ERROR, "an internal error; the log has details"
    )


def _headers_of(error: Exception, status: HTTPStatus) -> dict[str, str] | None:
    if isinstance(error, DeliveryUnderWay):
        return {"Retry-After": "1"}
    if status is not HTTPStatus.SERVICE_UNAVAILABLE:
        return None
    return {"Retry-After": f"{STORAGE_RETRY_SECONDS}"}


def _of_http(error: HTTPException) -> Problem:
    headers = dict(error.headers) if error.headers else None
    return Problem(HTTPStatus(error.status_code), error.detail, headers=headers)


async def answer_error(request: Request, error: Exception) -> Response:
    return problem_response(logged_problem(request, error))


def logged_problem(request: Request, error: Exception) -> Problem:
    """Like `as_problem`; errors of storage are logged.

    Unexpected errors are raised again, and so logged by the server.
    """
    problem = as_problem(error)
    if isinstance(error, StorageError) and problem.status >= 500:
        log.error(
            "request_failed",
            method=request.scope.get("method", "WEBSOCKET"),
            path=request.url.path,
            status=problem.status.value,
            error=str(error),
        )
    return problem
