"""``/healthz``, ``/readyz``, ``/metrics`` and ``/identity``: for machines, no token."""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Any, Final, Self

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from hub.hub_address import (
    IDENTITY_PATH,
    LONGEST_CHALLENGE,
    SHORTEST_CHALLENGE,
    claim_token,
    is_on_one_machine,
    is_same,
    name_connection,
    prove_identity,
    prove_token,
)
from hub.services.hub_conditions import HubCondition, HubConditions
from hub.services.hub_health import MetricsService
from hub.web.json_output import JsonObject, Time, former_name, json_response
from hub.web.operation import JSON, TEXT, Operation, Parameter, Routes
from hub.web.problem_types import EXPLANATIONS, PROBLEMS_PATH, ProblemType
from hub.web.problems import Problem
from hub.web.rate_limits import RateLimits
from protocols.prometheus import CONTENT_TYPE, render
from protocols.protocol_errors import InvalidValue

_FORWARDING: Final = re.compile(r"x-forwarded|x-real-ip$|forwarded$|via$")
"""The names of headers that proxies add to a request."""


class AliveJson(JsonObject):
    alive: bool


class HubConditionJson(JsonObject):
    """What is wrong, since when, and what to do about it, as far as that is known.

    An ``error`` keeps the hub from working; any other condition is a warning. ``over``:
    it was so lately, and is not any more.
    """

    what: str
    since: Time
    advice: str
    error: bool
    over: bool
    trouble: Annotated[bool, former_name("error")]

    @classmethod
    def of_condition(cls, condition: HubCondition) -> Self:
        return cls.of(
            condition,
            error=condition.is_error,
            over=condition.is_over,
            trouble=condition.is_error,
        )


class ReadinessJson(JsonObject):
    """Whether the hub can work, and why not; ``warnings`` do not keep it from working.

    ``conditions`` are errors and warnings, each with its beginning and what to do.
    """

    ready: bool
    errors: Sequence[str]
    troubles: Annotated[Sequence[str], former_name("errors")]
    warnings: Sequence[str]
    conditions: Sequence[HubConditionJson]

    @classmethod
    def of_conditions(cls, conditions: Sequence[HubCondition], **members: Any) -> Self:
        errors = [each.what for each in conditions if each.is_error]
        return cls(
            ready=not errors,
            errors=errors,
            troubles=errors,
            warnings=[each.what for each in conditions if not each.is_error],
            conditions=[HubConditionJson.of_condition(each) for each in conditions],
            **members,
        )


class IdentityJson(JsonObject):
    """The answer to a challenge. ``proof``: its HMAC-SHA256, in hexadecimal digits."""

    proof: str


class MonitoringRoutes(Routes):
    tag = "monitoring"

    def __init__(
        self,
        conditions: HubConditions,
        metrics: MetricsService,
        identity_key: str = "",
        token: str = "",
        limits: RateLimits | None = None,
    ) -> None:
        """Take what the hub proves its identity with.

        ``identity_key`` "": the hub has no file beside its database. ``token``: the
        admin token. ``limits``: count the requests that claim to have the token.
        """
        self._conditions = conditions
        self._metrics = metrics
        self._identity_key = identity_key
        self._token = token
        self._limits = limits or RateLimits()

    @Operation(
        method="GET",
        path="/healthz",
        id="get_liveness",
        summary="Whether the process is alive",
        description="200 while it is.",
        answers={200: {JSON: AliveJson}},
        problems=(),
    )
    async def alive(self, request: Request) -> Response:
        return json_response(AliveJson(alive=True))

    @Operation(
        method="GET",
        path="/readyz",
        id="get_readiness",
        summary="Whether the hub can work, and why not",
        description="200, or 503 with `errors`, the reasons why the hub cannot work;"
        " `warnings`; and `conditions`: for each of both `what` is wrong, `since`"
        " when, what to do (`advice`), and whether it is an `error`.",
        answers={200: {JSON: ReadinessJson}, 503: {JSON: ReadinessJson}},
        problems=(),
    )
    async def ready(self, request: Request) -> Response:
        found = ReadinessJson.of_conditions(await self._conditions.look())
        status = HTTPStatus.OK if found.ready else HTTPStatus.SERVICE_UNAVAILABLE
        return json_response(found, status)

    @Operation(
        method="GET",
        path="/metrics",
        id="get_metrics",
        summary="Metrics for Prometheus, text format 0.0.4",
        answers={200: {TEXT: str}},
        problems=(503,),
    )
    async def metrics(self, request: Request) -> Response:
        return Response(
            render(await self._metrics.families()),
            headers={"Content-Type": CONTENT_TYPE},
        )

    @Operation(
        method="GET",
        path=f"{PROBLEMS_PATH}/{{name}}",
        id="explain_problem",
        summary="What a type of problem means, and what to do",
        answers={200: {TEXT: str}},
        problems=(404, 429),
    )
    async def explain(self, request: Request) -> Response:
        try:
            found = ProblemType(request.path_params["name"])
        except ValueError:
            reason = "no such type of problem"
            raise Problem(HTTPStatus.NOT_FOUND, reason) from None
        return PlainTextResponse(f"{found}\n\n{EXPLANATIONS[found]}\n")

    @Operation(
        method="GET",
        path=IDENTITY_PATH,
        id="prove_identity",
        summary="Prove to a command on this machine that this is its hub",
        description='The answer has `{"proof"}`, the HMAC-SHA256 of `challenge` (16 to'
        " 128 characters) with the key in the hub's file. With `claim`, the"
        " HMAC-SHA256 with the admin token of the lines `fanfare command`, connection"
        " and challenge, the proof is that of `fanfare hub`, connection and challenge."
        " The connection is `127.0.0.1 54321 127.0.0.1 8080`: address and port of the"
        " client, then of the hub. 403 for any other claim, from another machine, and"
        " with headers of a proxy.",
        query=(
            Parameter(
                name="challenge",
                help=f"at least {SHORTEST_CHALLENGE} random characters",
                longest=LONGEST_CHALLENGE,
                is_required=True,
            ),
            Parameter(
                name="claim",
                help="proof of the command that it has the admin token; then the answer"
                " proves that the hub has it",
            ),
        ),
        answers={200: {JSON: IdentityJson}},
        problems=(403, 404, 422, 429),
    )
    async def identity(self, request: Request) -> Response:
        claim = request.query_params.get("claim")
        if claim is None and not self._identity_key:
            raise Problem(HTTPStatus.NOT_FOUND, "this hub has no file for commands")
        challenge = request.query_params.get("challenge", "")
        if not SHORTEST_CHALLENGE <= len(challenge) <= LONGEST_CHALLENGE:
            length = f"{SHORTEST_CHALLENGE} to {LONGEST_CHALLENGE} characters"
            raise InvalidValue("challenge", length)
        if claim is None:
            proof = prove_identity(self._identity_key, challenge)
        else:
            proof = self._prove_token(request, claim, challenge)
        return json_response(IdentityJson(proof=proof))

    def _prove_token(self, request: Request, claim: str, challenge: str) -> str:
        """Return the proof, but only to a caller who has the token, too.

        Others could use the proof to guess the token. Raises `Problem` 403 and 429.
        """
        self._limits.check_address(request)
        connection = _own_connection(request)
        if not is_same(claim, claim_token(self._token, connection, challenge)):
            raise Problem(
                HTTPStatus.FORBIDDEN,
                "claim: not made with the admin token, on this connection",
                field="claim",
            )
        return prove_token(self._token, connection, challenge)


def _own_connection(request: Request) -> str:
    """The name of a connection that a command on this machine makes directly.

    Raises `Problem` 403 for any other connection.
    """
    client, server = request.scope["client"], request.scope["server"]
    is_forwarded = any(_FORWARDING.match(name) for name in request.headers)
    is_known = client is not None and server is not None
    if is_forwarded or not is_known or not is_on_one_machine(client, server):
        raise Problem(
            HTTPStatus.FORBIDDEN,
            "claim: only from a command on the hub's own machine",
            field="claim",
        )
    return name_connection(client, server)
