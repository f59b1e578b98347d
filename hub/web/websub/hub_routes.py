"""``POST /hub``: the open WebSub hub, and the outcome of each request to it."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from hub.runtime.clock import Clock
from hub.services import WebSubService
from hub.services.open_hub_requests import PublishedUrl
from hub.services.playground import PlaygroundService
from hub.services.service_errors import ServiceError, TooManyWaiting
from hub.web.json_output import JsonObject, json_response, named_schema
from hub.web.operation import HTML, JSON, TEXT, Operation, Parameter, Routes
from hub.web.problems import Problem, as_problem, problem_response
from hub.web.rate_limits import RateLimits
from hub.web.request_input import check_type, combined_field, read_bytes
from hub.web.websub.diagnostics import DiagnosisJson, diagnosis_page
from hub.web.websub.ping_routes import RPC_PATH
from hub.web.websub.playground_endpoints import NotedBody, answer_of, received_of
from protocols.http import HeaderLink, format_link_header
from protocols.protocol_errors import InvalidValue
from protocols.websub.signatures import ALGORITHMS
from protocols.websub.websub_parameters import (
    FORMATS,
    PublishRequest,
    UnsubscribeRequest,
    read_form,
    read_request,
)
from storage.errors import StorageError

HUB_PATH = "/hub"
FORM_TYPE = "application/x-www-form-urlencoded"
RETRY_SECONDS = "60"
_WITH_SLASH = {f"{path}/": path for path in (HUB_PATH, RPC_PATH)}
"""Some clients end every path with a slash."""
_ENDING = "If there is such a subscription, its callback will be asked"
"""The answer does not reveal whether a subscription exists."""


_FORM = (
    Parameter(
        name="hub.mode",
        help="the kind of request",
        choices=("subscribe", "unsubscribe", "publish"),
        is_required=True,
    ),
    Parameter(name="hub.topic", help="the URL of the topic", longest=2_048),
    Parameter(name="hub.callback", help="the subscriber's URL", longest=2_048),
    Parameter(
        name="hub.lease_seconds",
        help="limited to 300 to 2592000",
        kind="integer",
        default=864_000,
        least=0,
    ),
    Parameter(name="hub.secret", help="signs notifications", longest=199),
    Parameter(
        name="hub.signature_algorithm", help="of the signature", choices=ALGORITHMS
    ),
    Parameter(
        name="hub.verify_token",
        help="repeated in the verification request",
        longest=1_024,
    ),
    Parameter(
        name="format", help="default: the topic's document as-is", choices=FORMATS
    ),
    Parameter(name="hub.url", help="topics with news", is_repeated=True),
)


class PingJson(JsonObject):
    """What becomes of one URL that was said to have news."""

    url: str
    status: Annotated[str, named_schema("PingOutcome")]
    reason: str

    @classmethod
    def of_all(cls, pinged: Sequence[PublishedUrl]) -> list[PingJson]:
        return [cls.of(each, status=each.outcome) for each in pinged]


class PingsJson(JsonObject):
    urls: list[PingJson]


class HubRoutes(Routes):
    tag = "websub"

    def __init__(
        self,
        websub: WebSubService,
        playground: PlaygroundService,
        limits: RateLimits,
        clock: Clock,
    ) -> None:
        self._websub = websub
        self._playground = playground
        self._limits = limits
        self._clock = clock

    @Operation(
        method="POST",
        path=HUB_PATH,
        id="ask_hub",
        summary="The open WebSub hub: subscribe, unsubscribe, publish",
        description="202 whatever will come of it; the link with rel=status leads to"
        " that. A publish request is answered with 204, or by URL where JSON is"
        " accepted. It takes parameters in the query too.",
        form=_FORM,
        answers={202: {TEXT: str}, 204: None, 200: {JSON: PingsJson}},
        headers={202: {"Link": "the diagnostics of this request, rel=status"}},
        plain_problems=(400, 403, 408, 413, 415, 503),
    )
    async def answer(self, request: Request) -> Response:
        """Answer a request to the hub.

        WebSub 5.1.2: an error's response "SHOULD" be described as plain text. A client
        that accepts JSON gets a problem instead, whose ``field`` names what is at
        fault.
        """
        if not self._playground.is_watching:
            return await self._respond(request)
        noted = NotedBody(request.receive)
        response = await self._respond(Request(request.scope, noted))
        received = received_of(request.scope, noted.body)
        self._playground.note_hub_request(received, answer_of(response))
        return response

    async def _respond(self, request: Request) -> Response:
        try:
            return await self._answer(request)
        except (InvalidValue, Problem, ServiceError, StorageError) as error:
            problem = _problem_of(error)
            if "json" in combined_field(request.headers, "accept").lower():
                return problem_response(problem)
            return _plain_error(problem)

    async def _answer(self, request: Request) -> Response:
        body = await read_bytes(request)
        if body:  # a ping may have all in its query
            check_type(request, FORM_TYPE)
        form = read_form(body, request.scope["query_string"].decode("latin-1"))
        asked = read_request(form, self._websub.shortest_lease)
        if isinstance(asked, PublishRequest):
            return await self._publish(asked, request)
        status_url = await self._websub.request(asked, self._limits.client(request))
        link = HeaderLink(href=status_url, rel="status")
        is_ending = isinstance(asked, UnsubscribeRequest)
        message = _ENDING if is_ending else "The callback will be asked"
        return PlainTextResponse(
            f"{message}; the status link shows the outcome.\n",
            status_code=HTTPStatus.ACCEPTED,
            headers={"Link": format_link_header([link])},
        )

    async def _publish(self, asked: PublishRequest, request: Request) -> Response:
        pinged = await self._websub.publish(asked)
        if "application/json" not in combined_field(request.headers, "accept").lower():
            return Response(status_code=HTTPStatus.NO_CONTENT)
        return json_response(PingsJson(urls=PingJson.of_all(pinged)))

    @Operation(
        method="GET",
        path=f"{HUB_PATH}/subscriptions/{{token}}",
        id="diagnose_request",
        summary="The outcome of a request to the open hub",
        description="The token comes with the 202.",
        answers={200: {JSON: DiagnosisJson, HTML: str}},
        problems=(404, 429),
    )
    async def diagnose(self, request: Request) -> Response:
        """Answer with a page if the client accepts HTML, or else with JSON."""
        diagnosis = await self._websub.diagnose(request.path_params["token"])
        if "text/html" in combined_field(request.headers, "accept").lower():
            return diagnosis_page(diagnosis, self._clock.now())
        response = json_response(DiagnosisJson.of_diagnosis(diagnosis))
        response.headers["Cache-Control"] = "no-store"
        return response


class HubMiddleware:
    """ASGI middleware that passes requests to the hub directly to their endpoint.

    They are the most frequent requests, and the endpoint answers its errors itself.
    Searching for a route and error handlers would cost as much as reading the request.
    """

    def __init__(self, app: ASGIApp, websub: HubRoutes) -> None:
        self._app = app
        self._websub = websub

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] in _WITH_SLASH:
            scope = {**scope, "path": _WITH_SLASH[scope["path"]]}
        is_asked = scope["type"] == "http" and scope["path"] == HUB_PATH
        if is_asked and scope["method"] == "POST":
            response = await self._websub.answer(Request(scope, receive))
            await response(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _problem_of(error: Exception) -> Problem:
    """An invalid value is a 400 here, as WebSub clients expect."""
    problem = as_problem(error)
    headers = dict(problem.headers or {})
    if isinstance(error, TooManyWaiting):
        headers["Retry-After"] = RETRY_SECONDS
    is_invalid = isinstance(error, InvalidValue)
    return Problem(
        HTTPStatus.BAD_REQUEST if is_invalid else problem.status,
        problem.detail,
        field=problem.field,
        headers=headers,
        type=problem.type,
    )


def _plain_error(problem: Problem) -> Response:
    headers = {**(problem.headers or {}), "X-Content-Type-Options": "nosniff"}
    return PlainTextResponse(
        f"{problem.detail}\n", status_code=problem.status, headers=headers
    )
