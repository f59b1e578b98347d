"""Requests with ``hub.mode`` to ``/`` and ``/hubbub``, whatever the method.

The mode decides, not the method: some clients subscribe by GET, and some send
parameters in the body of a GET. `create_modes` has all modes.
"""

from __future__ import annotations

import re
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from hub.services import Services
from hub.services.service_errors import ServiceError
from hub.services.token_authentication import WITHOUT_TOKEN, Principal
from hub.web.audited_requests import draft_of
from hub.web.authentication import Authenticator, require
from hub.web.problems import Problem
from hub.web.rate_limits import RateLimits
from hub.web.request_input import read_bytes
from hub.web.superfeedr.answers import CORS, error_answer, json_answer, preflight_answer
from hub.web.superfeedr.calls import Call, Effect, Mode, Modes
from hub.web.superfeedr.credentials import identify, query_of
from hub.web.superfeedr.listing import SubscriptionList
from hub.web.superfeedr.retrieval_modes import retrieval_modes
from hub.web.superfeedr.subscription_modes import Publishing, Subscribing
from protocols.protocol_errors import InvalidValue
from protocols.superfeedr.parameters import (
    DEFAULT_LENGTHS,
    Lengths,
    Parameters,
    read_parameters,
)
from protocols.track import QueryError
from storage.errors import StorageError
from storage.records import AuditSource, AuditTarget, TokenScope

TOLD = (
    TokenScope.SUBSCRIBE,
    TokenScope.UNSUBSCRIBE,
    TokenScope.LIST,
    TokenScope.RETRIEVE,
)


def authentication_modes() -> Modes:
    return {"authenticate": Mode(answer=answer_scopes)}


async def answer_scopes(call: Call) -> Response:
    """``hub.mode=authenticate``: whether a token is good, and for what.

    Superfeedr does not document it, yet clients begin with it. Some read the status
    alone; others send ``rights=true`` and look for ``subscribe`` in the answer.
    """
    return json_answer(call, {each.value: call.principal.may(each) for each in TOLD})


def create_modes(services: Services, limits: RateLimits | None = None) -> Modes:
    """All modes, in the order in which error messages list them."""
    return {
        **Subscribing(services.superfeedr, services.retrieval).modes(),
        **SubscriptionList(services.selected_subscriptions).modes(),
        **Publishing(services.websub, services.publishing).modes(),
        **retrieval_modes(services, limits or RateLimits()),
        **authentication_modes(),
    }


AUDITED_MODES = {"replay": "replay_subscription"}
"""Modes whose operations have another name in the API, and so in the audit trail."""
PATHS = ("/", "/hubbub", "/hubbub/")
STREAM = "/stream"
"""Also the path of the hub's own stream, whose parameters never begin with ``hub.``."""
OF_STREAMS = "retrieve"
SHOWN_MODE = 40
_OWN_NAME = re.compile(r"(?:^|&)hub(?:\.|%2e|\[|%5b)", re.IGNORECASE)
"""A parameter in a query that begins with ``hub.`` or ``hub[``, encoded or not."""


class SuperfeedrMiddleware:
    """ASGI middleware that answers requests for this API and passes on all others."""

    def __init__(
        self,
        app: ASGIApp,
        modes: Modes,
        authenticator: Authenticator,
        lengths: Lengths = DEFAULT_LENGTHS,
    ) -> None:
        self._app = app
        self._modes = modes
        self._authenticator = authenticator
        self._lengths = lengths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_for_api(scope):
            await self._app(scope, receive, send)
            return
        response = await self.answer(Request(scope, receive))
        await response(scope, receive, send)

    async def answer(self, request: Request) -> Response:
        """Answer a request; every error becomes an answer that explains it."""
        try:
            response = await self._answer(request)
        except (InvalidValue, Problem, ServiceError, StorageError) as error:
            response = error_answer(request, error)
        for name, value in CORS.items():
            response.headers[name] = value
        return response

    async def _answer(self, request: Request) -> Response:
        if request.method == "OPTIONS":
            return preflight_answer(request)
        parameters = read_parameters(
            query_of(request.scope),
            request.headers.get("content-type", ""),
            await read_bytes(request),
            self._lengths,
        )
        mode = self._mode(parameters, str(request.scope["path"]))
        principal = await self._admit(request, parameters, mode)
        call = Call(parameters=parameters, principal=principal, request=request)
        try:
            return await mode.answer(call)
        except InvalidValue as error:
            raise _named_as_sent(error, parameters) from error

    def _mode(self, parameters: Parameters, path: str) -> Mode:
        """The mode that is requested. Raises `Problem` 422 and `InvalidValue`.

        Superfeedr 1.9: streams take the parameters of ``retrieve``, and allow no other
        mode.
        """
        known = "|".join(self._modes)
        if path == STREAM and not parameters.all("hub.mode"):
            return self._modes[OF_STREAMS]
        name = parameters.required("hub.mode", f"one of {known}").strip().lower()
        if name not in self._modes:
            raise Problem(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"{name[:SHOWN_MODE]} is not a supported mode {known} (hub.mode)",
                field="hub.mode",
            )
        return self._modes[name]

    async def _admit(
        self, request: Request, parameters: Parameters, mode: Mode
    ) -> Principal:
        if mode.is_open:
            return WITHOUT_TOKEN
        principal = await identify(
            request, parameters, self._authenticator, mode.effect
        )
        if mode.effect is not Effect.NONE:
            _tell_audit(request, parameters, principal)
        if mode.scope is not None:
            require(principal, mode.scope)
        return principal


def _tell_audit(request: Request, parameters: Parameters, principal: Principal) -> None:
    draft = draft_of(request)
    name = parameters.one("hub.mode").strip().lower()
    draft.operation = AUDITED_MODES.get(name, name)
    draft.principal, draft.source = principal, AuditSource.SUPERFEEDR
    topic, callback = (parameters.one(f"hub.{it}") for it in ("topic", "callback"))
    draft.target = AuditTarget.SUBSCRIPTION
    draft.target_name = " to ".join(filter(None, (callback, topic)))


def _named_as_sent(error: InvalidValue, given: Parameters) -> Exception:
    """The error, with the name of the parameter that the client sent.

    A track query is in the topic, unless the request has a ``query``.
    """
    is_in_topic = isinstance(error, QueryError) and not given.all("query")
    if not is_in_topic and error.field != "topic":
        return error
    return Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY, f"hub.topic: {error}", field="hub.topic"
    )


def is_for_api(scope: Scope) -> bool:
    """Whether a request is for this API, and not for a page or stream at the same path.

    A browser that opens the page at ``/`` sends neither a mode nor a body.
    """
    path = str(scope["path"])
    if path not in (*PATHS, STREAM) and not path.startswith("/&"):
        return False
    always = {"/": ("POST", "OPTIONS"), STREAM: ("OPTIONS",)}
    if path not in always or scope["method"] in always[path]:
        return True
    headers = Headers(scope=scope)
    has_body = headers.get("content-length", "0") != "0"
    return (
        has_body
        or "transfer-encoding" in headers
        or _OWN_NAME.search(query_of(scope)) is not None
    )
