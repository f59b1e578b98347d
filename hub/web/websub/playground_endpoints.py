"""``/playground/topics/{token}`` and ``/playground/callbacks/{token}``.

They are the public part of a run of the playground. Without a valid token they tell
nothing. A run that is gone is answered with 410, so that hubs end its subscriptions.
"""

from __future__ import annotations

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message, Receive, Scope

from hub.http.exchange import MEBIBYTE
from hub.services.playground import GivenAnswer, PlaygroundService, ReceivedRequest
from hub.services.service_errors import ServiceError
from hub.web.operation import TEXT, Operation, Parameter, Routes
from hub.web.problems import Problem, as_problem
from hub.web.request_input import read_bytes
from hub.websub.playground_network import OWN_MARK
from hub.websub.playground_runs import (
    KEPT_BODY,
    TOPIC_TYPE,
    topic_document,
    topic_links,
)
from protocols.websub.subscribing import CONFIRMATION_TYPE

CALLBACK_PATH = "/playground/callbacks/{token}"
LARGEST_NOTIFICATION = 2 * MEBIBYTE
_SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "no-store",
}


class PlaygroundEndpoints(Routes):
    tag = "websub"

    def __init__(self, playground: PlaygroundService) -> None:
        self._playground = playground

    @Operation(
        method="GET",
        path="/playground/topics/{token}",
        id="get_playground_topic",
        summary="A topic of the WebSub playground, in Atom",
        description="410 once its run is over.",
        answers={200: {TOPIC_TYPE: str}},
        headers={200: {"Link": "the hub (rel=hub) and the topic itself (rel=self)"}},
        plain_problems=(410, 503),
    )
    async def topic(self, request: Request) -> Response:
        try:
            run = self._playground.topic_at(request.path_params["token"])
        except ServiceError as error:
            return _refusal(as_problem(error))
        headers = {"Content-Type": TOPIC_TYPE, "Link": topic_links(run)}
        answer = GivenAnswer(status=200, headers=headers, body=topic_document(run))
        self._playground.note_fetch(run, received_of(request.scope), answer)
        return _response(answer, "topic")

    @Operation(
        method="GET",
        path=CALLBACK_PATH,
        id="confirm_playground",
        summary="A hub asks a callback of the WebSub playground whether it wants this",
        description="Answered with the challenge, or as its run says; 410 once that is"
        " over, 503 above 30 requests at once.",
        query=(
            Parameter(
                name="hub.mode",
                help="the kind of request",
                choices=("subscribe", "unsubscribe", "denied"),
            ),
            Parameter(name="hub.topic", help="the topic of the subscription"),
            Parameter(name="hub.challenge", help="returned in the answer"),
            Parameter(name="hub.lease_seconds", help="the lease in seconds"),
            Parameter(name="hub.reason", help="the reason of a denial"),
        ),
        answers={200: {CONFIRMATION_TYPE: str, TEXT: str}},
        plain_problems=(404, 410, 503),
    )
    async def confirm(self, request: Request) -> Response:
        return await self._take(request, received_of(request.scope))

    @Operation(
        method="POST",
        path=CALLBACK_PATH,
        id="notify_playground",
        summary="A hub notifies a callback of the WebSub playground",
        description="Of up to 2 MiB; answered as its run says.",
        answers={204: None, 302: None},
        plain_problems=(408, 410, 413, 500, 503),
    )
    async def notify(self, request: Request) -> Response:
        try:
            body = await read_bytes(request, LARGEST_NOTIFICATION)
        except Problem as problem:
            return _refusal(problem)
        return await self._take(request, received_of(request.scope, body))

    async def _take(self, request: Request, received: ReceivedRequest) -> Response:
        try:
            answer = await self._playground.take(request.path_params["token"], received)
        except ServiceError as error:
            return _refusal(as_problem(error))
        return _response(answer, "callback")


def received_of(scope: Scope, body: bytes = b"") -> ReceivedRequest:
    headers = tuple(
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in scope["headers"]
    )
    target = scope.get("raw_path", scope["path"].encode()).decode("latin-1")
    if scope["query_string"]:
        target = f"{target}?{scope['query_string'].decode('latin-1')}"
    return ReceivedRequest(
        method=scope["method"],
        target=target,
        headers=headers,
        body=body,
    )


class NotedBody:
    """An ASGI ``receive`` that keeps the beginning of the body it passes on."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.body = b""

    async def __call__(self) -> Message:
        message = await self._receive()
        if len(self.body) < KEPT_BODY:
            self.body += message.get("body", b"")
        return message


def answer_of(response: Response) -> GivenAnswer:
    """Return the answer in the form in which it is shown."""
    return GivenAnswer(
        status=response.status_code,
        headers=dict(response.headers),
        body=bytes(response.body),
    )


def _response(answer: GivenAnswer, mark: str) -> Response:
    return Response(
        answer.body,
        status_code=answer.status,
        headers={**_SAFE, **answer.headers, OWN_MARK: mark},
    )


def _refusal(problem: Problem) -> Response:
    is_busy = problem.status is HTTPStatus.SERVICE_UNAVAILABLE
    return PlainTextResponse(
        f"{problem.detail}\n",
        problem.status,
        headers={**(problem.headers or {}), **_SAFE}
        | ({"Retry-After": "60"} if is_busy else {}),
    )
