"""Headers and errors of OpenFeeder's answers (OpenFeeder 8 and 9)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from http import HTTPStatus

import structlog
from starlette.responses import Response

from hub.web.problems import as_problem
from hub.web.rate_limits import Allowance
from protocols.openfeeder.serving.documents import VERSION, render_error
from protocols.openfeeder.serving.errors import ErrorCode, OpenFeederError
from storage.errors import StorageError

STATUSES = {
    ErrorCode.NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorCode.RATE_LIMITED: HTTPStatus.TOO_MANY_REQUESTS,
    ErrorCode.AUTH_REQUIRED: HTTPStatus.UNAUTHORIZED,
    ErrorCode.SERVER_ERROR: HTTPStatus.INTERNAL_SERVER_ERROR,
    ErrorCode.INVALID_PARAM: HTTPStatus.BAD_REQUEST,
}
_CODES = {status.value: code for code, status in STATUSES.items()}
_SHOWN = (
    "ETag, Retry-After, X-OpenFeeder, X-OpenFeeder-Cache, X-RateLimit-Limit,"
    " X-RateLimit-Remaining, X-RateLimit-Reset"
)
PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, OPTIONS",
    "Access-Control-Allow-Headers": "Authorization, If-None-Match, X-OpenFeeder-Intent",
    "Access-Control-Max-Age": "86400",
}
"""What a page is told that asks whether it may ask."""

log = structlog.get_logger()


def base_headers(*, is_keyed: bool) -> dict[str, str]:
    """Of every answer; pages of any site may read them."""
    return {
        "X-OpenFeeder": VERSION,
        "X-OpenFeeder-Cache": "MISS",
        "X-Content-Type-Options": "nosniff",
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Expose-Headers": _SHOWN,
        **({"Vary": "Authorization"} if is_keyed else {}),
    }


def limit_headers(allowance: Allowance | None) -> dict[str, str]:
    """What may still be asked; none if there is no limit. Raises `TooManyRequests`."""
    if allowance is None:
        return {}
    reset = math.ceil(allowance.reset_at.timestamp())
    headers = {
        "X-RateLimit-Limit": str(allowance.limit),
        "X-RateLimit-Remaining": str(allowance.remaining),
        "X-RateLimit-Reset": str(reset),
    }
    if allowance.wait:
        raise TooManyRequests(
            {**headers, "Retry-After": str(math.ceil(allowance.wait))}
        )
    return headers


class TooManyRequests(OpenFeederError):
    def __init__(self, headers: Mapping[str, str]) -> None:
        self.headers = headers
        seconds = headers["Retry-After"]
        super().__init__(
            ErrorCode.RATE_LIMITED, f"too many requests; try again in {seconds} s"
        )


def error_response(error: Exception, headers: Mapping[str, str]) -> Response:
    """What nobody can help but the hub is told without its reasons."""
    more: dict[str, str] = {"Cache-Control": "no-store"}
    if isinstance(error, OpenFeederError):
        code, status, message = error.code, STATUSES[error.code], str(error)
        if isinstance(error, TooManyRequests):
            more |= error.headers
    else:
        problem = as_problem(error)
        status, message = problem.status, problem.detail
        code = _CODES.get(status, _code_of(status))
        more |= problem.headers or {}
        if isinstance(error, StorageError):
            log.error("request_failed", status=status.value, error=str(error))
            message = "the hub cannot answer now; try again later"
    if status is HTTPStatus.UNAUTHORIZED:
        more["WWW-Authenticate"] = 'Bearer realm="openfeeder"'
    if status is HTTPStatus.SERVICE_UNAVAILABLE:
        more["Retry-After"] = "30"
    return Response(
        render_error(code, message),
        status_code=status,
        headers={**headers, **more},
        media_type="application/json",
    )


def _code_of(status: HTTPStatus) -> ErrorCode:
    return ErrorCode.SERVER_ERROR if status >= 500 else ErrorCode.INVALID_PARAM
