"""``/upstream/{token}``: where other hubs confirm subscriptions and push.

Without a valid token it tells nothing, and it never shows anything of a feed.
"""

from __future__ import annotations

from functools import partial
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from hub.http.exchange import MEBIBYTE
from hub.push.received_pushes import BodyReservation
from hub.services.push_callbacks import PushCallbackService
from hub.services.service_errors import ServiceError
from hub.web.operation import Operation, Parameter, Routes
from hub.web.problems import Problem, as_problem
from hub.web.request_input import combined_field, read_bytes
from protocols.protocol_errors import InvalidValue
from protocols.websub.subscribing import CONFIRMATION_TYPE, read_question
from protocols.websub.websub_parameters import Form, read_form
from storage.errors import NotFound, StorageError
from storage.records import PushCallback, PushWay

PATH = "/upstream/{token}"
LARGEST_PUSH = 10 * MEBIBYTE
"""The same limit as for a fetched feed."""
RETRY_SECONDS = "60"
_SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Content-Disposition": "attachment",
    "Cache-Control": "no-store",
}
_NOT_FOUND = "There is no such subscription.\n"


class PushRoutes(Routes):
    tag = "push"

    def __init__(self, upstream: PushCallbackService) -> None:
        self._upstream = upstream

    @Operation(
        method="GET",
        path=PATH,
        id="confirm_push",
        summary="Verification by another hub that a subscription was intended",
        description="By WebSub, or by rssCloud with url and challenge. Answered with"
        " the challenge as `application/octet-stream`, or 404 for anything not"
        " requested.",
        query=(
            Parameter(
                name="hub.mode",
                help="the kind of request",
                choices=("subscribe", "unsubscribe", "denied"),
            ),
            Parameter(
                name="hub.topic", help="the topic of the subscription", longest=2_048
            ),
            Parameter(
                name="hub.challenge", help="returned in the answer", longest=1_024
            ),
            Parameter(name="hub.lease_seconds", help="the lease in seconds"),
            Parameter(name="hub.reason", help="the reason of a denial"),
            Parameter(name="url", help="the feed (rssCloud)", longest=2_048),
            Parameter(name="challenge", help="the challenge (rssCloud)", longest=1_024),
        ),
        answers={200: {CONFIRMATION_TYPE: str}},
        plain_problems=(404, 503),
    )
    async def confirm(self, request: Request) -> Response:
        """Confirm what this hub has asked for; 404 for everything else."""
        try:
            text = await self._confirm(request)
        except (InvalidValue, NotFound):
            return PlainTextResponse(_NOT_FOUND, HTTPStatus.NOT_FOUND, headers=_SAFE)
        except StorageError as error:
            return _refusal(as_problem(error))
        return Response(text, headers={**_SAFE, "Content-Type": CONFIRMATION_TYPE})

    async def _confirm(self, request: Request) -> str:
        form = read_form(b"", request.scope["query_string"].decode("latin-1"))
        token = request.path_params["token"]
        if form.one("hub.mode"):
            return await self._upstream.answer(token, read_question(form))
        return await self._upstream.answer_cloud(
            token, form.one("url"), _challenge(form)
        )

    @Operation(
        method="POST",
        path=PATH,
        id="push",
        summary="A push of a feed by another hub",
        description="Signed by X-Hub-Signature, of up to 10 MiB; what is not signed"
        " rightly is ignored, also with 202. 410 without a subscription, 503 if too"
        " much is waiting. Of rssCloud a form with url.",
        answers={202: None},
        plain_problems=(400, 408, 410, 413, 503),
    )
    async def take(self, request: Request) -> Response:
        try:
            callback = await self._upstream.open(request.path_params["token"])
            if callback.way is PushWay.CLOUD:
                form = read_form(await read_bytes(request))
                await self._upstream.take_notice(callback, form.one("url"))
            else:
                await self._take(request, callback)
        except (InvalidValue, Problem, ServiceError, StorageError) as error:
            return _refusal(as_problem(error))
        return Response(status_code=HTTPStatus.ACCEPTED)

    async def _take(self, request: Request, callback: PushCallback) -> None:
        with self._upstream.reading() as reservation:
            take = partial(_take_room, reservation)
            try:
                body = await read_bytes(request, LARGEST_PUSH, take)
            except Problem as problem:
                if problem.status is HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
                    await self._upstream.reject(callback)
                raise
            await self._upstream.take(
                callback,
                body,
                request.headers.get("content-type", ""),
                combined_field(request.headers, "x-hub-signature"),
            )


def _take_room(reservation: BodyReservation, count: int) -> None:
    if not reservation.take(count):
        raise Problem(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "too many pushes are being read",
            headers={"Retry-After": RETRY_SECONDS},
        )


def _challenge(form: Form) -> str:
    challenge = form.required("challenge", "the challenge to return")
    if len(challenge) > 1_024 or not challenge.isascii() or not challenge.isprintable():
        raise InvalidValue("challenge", "1 to 1024 printable ASCII characters")
    return challenge


def _refusal(problem: Problem) -> Response:
    return PlainTextResponse(
        f"{problem.detail}\n",
        problem.status,
        headers={**(problem.headers or {}), **_SAFE},
    )
