"""``/.well-known/openfeeder.json`` and ``/openfeeder`` (OpenFeeder 1.0)."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

import msgspec
import structlog
from starlette.requests import Request
from starlette.responses import Response

from hub.publishing.openfeeder_analytics import Analytics
from hub.services.openfeeder_documents import OpenFeederService, ServedDocument
from hub.services.publisher_notices import MOST_URLS, Hint, HintService
from hub.services.service_errors import ServiceError
from hub.web.authentication import Authenticator
from hub.web.json_output import JsonObject, json_response, named_schema
from hub.web.not_modified import is_current, not_modified
from hub.web.operation import ANY_TOKEN, JSON, Operation, Parameter, Routes
from hub.web.problems import Problem, as_problem
from hub.web.rate_limits import RateLimits, RequestAllowance
from hub.web.request_input import read_bytes
from hub.web.websub.hub_routes import PingJson
from protocols.openfeeder.write.bot_requests import AnalyticsEvent, Endpoint, find_bot
from protocols.openfeeder.write.content_queries import (
    DEFAULT_LIMIT,
    LARGEST_LIMIT,
    LONGEST_QUERY,
    LONGEST_URL,
    ErrorCode,
    OpenFeederError,
    PageQuery,
    PageSearchQuery,
    invalid_parameter,
    read_request,
)
from protocols.openfeeder.write.served_documents import SCHEMA, VERSION, render_error
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
"""Headers of the answer to a preflight request (CORS)."""

log = structlog.get_logger()


def base_headers(*, is_keyed: bool) -> dict[str, str]:
    """The headers of every answer; pages of any site may read them."""
    return {
        "X-OpenFeeder": VERSION,
        "X-OpenFeeder-Cache": "MISS",
        "X-Content-Type-Options": "nosniff",
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Expose-Headers": _SHOWN,
        **({"Vary": "Authorization"} if is_keyed else {}),
    }


def limit_headers(allowance: RequestAllowance | None) -> dict[str, str]:
    """Return headers that say how many requests remain; {} without a limit.

    Raises `TooManyRequests`.
    """
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
    """Return an error in OpenFeeder's envelope; internal errors are not explained."""
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


DISCOVERY = "/.well-known/openfeeder.json"
CONTENT = "/openfeeder"
UPDATE = "/openfeeder/update"
KEEP_SECONDS = 60
DISCOVERY_SECONDS = 3_600
LONGEST_INTENT = 200


Answering = Callable[[Request], Awaitable[ServedDocument]]


@dataclass(slots=True)
class _Counted:
    """What analytics counts of a request once it is answered."""

    endpoint: Endpoint
    query: str = ""


_QUERY = (
    Parameter(name="url", help="the page to fetch", longest=LONGEST_URL),
    Parameter(name="q", help="search words", longest=LONGEST_QUERY),
    Parameter(
        name="page", help="page of the index", kind="integer", default=1, least=1
    ),
    Parameter(
        name="limit",
        help=f"items or chunks; cut to 1 to {LARGEST_LIMIT}",
        kind="integer",
        default=DEFAULT_LIMIT,
    ),
    Parameter(name="min_score", help="the lowest relevance, 0 to 1; only with q"),
    Parameter(name="since", help="changes since then: RFC 3339, or a token"),
    Parameter(name="until", help="changes until then: RFC 3339"),
)


class OpenFeederErrorJson(JsonObject):
    code: Annotated[str, named_schema("OpenFeederCode")]
    message: str


class OpenFeederProblemJson(JsonObject):
    """An error as OpenFeeder tells it."""

    schema: str
    error: OpenFeederErrorJson


class OpenFeederHintsJson(JsonObject):
    """What becomes of the URLs that were said to have changed."""

    schema: str
    urls: list[PingJson]


_PROBLEM = {JSON: OpenFeederProblemJson}
_PROBLEMS = {404: _PROBLEM, 429: _PROBLEM, 500: _PROBLEM, 503: _PROBLEM}


class OpenFeederRoutes(Routes):
    tag = "openfeeder"

    def __init__(
        self,
        openfeeder: OpenFeederService,
        hints: HintService,
        analytics: Analytics,
        authenticator: Authenticator,
        limits: RateLimits,
    ) -> None:
        self._openfeeder = openfeeder
        self._hints = hints
        self._analytics = analytics
        self._authenticator = authenticator
        self._limits = limits

    @Operation(
        method="GET",
        path=DISCOVERY,
        id="discover_openfeeder",
        summary="The discovery document of OpenFeeder 1.0",
        answers={200: {JSON: dict}, 304: None, **_PROBLEMS},
        problems=(),
    )
    @Operation(
        method="OPTIONS",
        path=DISCOVERY,
        id="preflight_openfeeder_discovery",
        summary="CORS preflight of the same path",
        answers={204: None, **_PROBLEMS},
        problems=(),
    )
    async def discover(self, request: Request) -> Response:
        counted = _Counted(Endpoint.DISCOVERY)

        async def answer(request: Request) -> ServedDocument:
            return self._openfeeder.discovery()

        return await self._answer(request, answer, counted, DISCOVERY_SECONDS)

    @Operation(
        method="GET",
        path=CONTENT,
        id="read_openfeeder",
        summary="OpenFeeder: the index, a page in chunks, a search, or changes",
        description="The index (`page`, `limit`), a page in chunks (`url`), a search"
        " (`q`, `min_score`), or changes (`since`, `until`). Requires the key of the"
        " site, if it has one.",
        query=_QUERY,
        answers={
            200: {JSON: dict},
            304: None,
            400: _PROBLEM,
            401: _PROBLEM,
            **_PROBLEMS,
        },
        headers={200: {"X-OpenFeeder-Cache": "HIT or MISS"}},
        problems=(),
        security=ANY_TOKEN,
    )
    @Operation(
        method="OPTIONS",
        path=CONTENT,
        id="preflight_openfeeder",
        summary="CORS preflight of the same path",
        answers={204: None, **_PROBLEMS},
        problems=(),
    )
    async def show(self, request: Request) -> Response:
        counted = _Counted(Endpoint.INDEX)

        async def answer(request: Request) -> ServedDocument:
            self._check_key(request)
            query = read_request(request.query_params)
            if isinstance(query, PageSearchQuery):
                counted.endpoint, counted.query = Endpoint.SEARCH, query.query
            elif isinstance(query, PageQuery):
                counted.endpoint, counted.query = Endpoint.FETCH, query.query
            return await self._openfeeder.answer(query)

        return await self._answer(request, answer, counted, KEEP_SECONDS)

    async def _answer(
        self, request: Request, answer: Answering, counted: _Counted, seconds: int
    ) -> Response:
        """Answer a request; every error is reported in the envelope of section 8."""
        began = time.perf_counter()
        is_keyed = bool(self._openfeeder.options.gatekeeper.key)
        headers = base_headers(is_keyed=is_keyed)
        try:
            headers |= limit_headers(self._limits.count_address(request))
            self._check_on()
            if request.method == "OPTIONS":
                headers |= PREFLIGHT
                return Response(status_code=HTTPStatus.NO_CONTENT, headers=headers)
            served = await answer(request)
        except (OpenFeederError, StorageError) as error:
            return error_response(error, headers)
        except Exception:
            log.exception("request_failed", path=request.url.path)
            return error_response(RuntimeError(), headers)
        elapsed = time.perf_counter() - began
        self._count(request, served, counted, elapsed)
        return _response(request, served, headers, counted, seconds, is_keyed)

    def _check_on(self) -> None:
        if not self._openfeeder.options.is_on:
            raise OpenFeederError(ErrorCode.NOT_FOUND, "OpenFeeder is disabled")

    def _check_key(self, request: Request) -> None:
        """Raises `OpenFeederError` if the site has a key that the request lacks.

        Section 7: "Authenticated endpoints SHOULD use Bearer tokens".
        """
        shown = request.headers.get("authorization", "")
        if not self._openfeeder.options.gatekeeper.admits(shown):
            message = "requires the key of this site: Authorization: Bearer KEY"
            raise OpenFeederError(ErrorCode.AUTH_REQUIRED, message)

    def _count(
        self,
        request: Request,
        served: ServedDocument,
        counted: _Counted,
        elapsed: float,
    ) -> None:
        if not self._analytics.is_on:
            return
        bot = find_bot(request.headers.get("user-agent", ""))
        if bot is not None:
            intent = request.headers.get("x-openfeeder-intent", "")
            self._analytics.note(
                AnalyticsEvent(
                    bot_name=bot.name,
                    bot_family=bot.family,
                    endpoint=counted.endpoint,
                    query=counted.query,
                    intent=intent[:LONGEST_INTENT],
                    results=served.results,
                    cached=served.is_cached,
                    response_ms=round(elapsed * 1_000),
                )
            )

    @Operation(
        method="POST",
        path=UPDATE,
        id="hint_openfeeder",
        summary="Report changed pages: their feeds are fetched soon",
        description="A body in JSON: urls, of pages or of feeds, and action, upsert or"
        " delete. Takes any token.",
        answers={
            202: {JSON: OpenFeederHintsJson},
            400: _PROBLEM,
            401: _PROBLEM,
            408: _PROBLEM,
            413: _PROBLEM,
            **_PROBLEMS,
        },
        problems=(),
        security=ANY_TOKEN,
    )
    async def update(self, request: Request) -> Response:
        """Take a hint to poll, from anybody with a token of this hub."""
        headers = base_headers(is_keyed=True)
        try:
            self._check_on()
            await self._check_token(request)
            hint = await _read_hint(request)
            pinged = await self._hints.take(hint.urls)
        except (OpenFeederError, StorageError, ServiceError, Problem) as error:
            return error_response(error, headers)
        hints = OpenFeederHintsJson(schema=SCHEMA, urls=PingJson.of_all(pinged))
        answer = json_response(hints, HTTPStatus.ACCEPTED)
        answer.headers.update(headers)
        return answer

    async def _check_token(self, request: Request) -> None:
        """Raises `OpenFeederError` without a valid token, or after too many requests.

        Requests without a valid token are counted by address, so that guessing is slow.
        """
        try:
            principal = await self._authenticator.identify(request.headers)
        except Problem as problem:
            limit_headers(self._limits.count_address(request))
            raise OpenFeederError(ErrorCode.AUTH_REQUIRED, problem.detail) from None
        if principal is not None:
            if principal.token is not None:
                self._limits.check_token(principal.token)
        else:
            limit_headers(self._limits.count_address(request))
            raise OpenFeederError(
                ErrorCode.AUTH_REQUIRED,
                "requires a token of the hub: Authorization: Bearer TOKEN",
            )


async def _read_hint(request: Request) -> Hint:
    body = await read_bytes(request)
    try:
        hint = msgspec.json.decode(body, type=Hint)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise invalid_parameter("body", f"action and urls, in JSON ({error})") from None
    if not hint.urls or len(hint.urls) > MOST_URLS:
        raise invalid_parameter("urls", f"1 to {MOST_URLS} of them")
    return hint


def _response(
    request: Request,
    served: ServedDocument,
    headers: dict[str, str],
    counted: _Counted,
    seconds: int,
    is_keyed: bool,
) -> Response:
    """The answer with a document, or 304.

    A page has a weak tag: it states how long ago it was made, so its bytes differ each
    time.
    """
    is_page = counted.endpoint is Endpoint.FETCH
    audience = (
        "private"
        if is_keyed and counted.endpoint is not Endpoint.DISCOVERY
        else "public"
    )
    headers |= {
        "ETag": f'W/"{served.etag}"' if is_page else f'"{served.etag}"',
        "Cache-Control": f"{audience}, max-age={seconds}",
        "X-OpenFeeder-Cache": "HIT" if served.is_cached else "MISS",
    }
    if is_current(request, served.etag, None):
        return not_modified(headers)
    return Response(served.body, headers=headers, media_type="application/json")
