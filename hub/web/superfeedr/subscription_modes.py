"""``hub.mode=subscribe``, ``unsubscribe``, and ``publish``, which is open to all.

A ping only has topics fetched, so it needs no token.
"""

from __future__ import annotations

import re
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response

from hub.services import PublishingService, WebSubService
from hub.services.account_subscriptions import (
    SubscriptionRequest,
    SuperfeedrService,
    Verify,
)
from hub.services.entry_retrieval import DEFAULT_COUNT, MOST_COUNT, RetrievalService
from hub.web.audited_requests import draft_of
from hub.web.request_input import combined_field
from hub.web.superfeedr.answers import SANDBOXED
from hub.web.superfeedr.calls import Call, Effect, Mode, Modes
from protocols.protocol_errors import InvalidValue
from protocols.superfeedr.parameters import Parameters
from protocols.websub.signatures import ALGORITHMS, OF_OLD
from protocols.websub.websub_parameters import (
    LONGEST_VERIFY_TOKEN,
    Form,
    PublishRequest,
    read_request,
)
from storage.records import Format, TokenScope, VerificationMode

_TOPICS = ("hub.url", "hub.topic")


class Publishing:
    def __init__(self, websub: WebSubService, publishing: PublishingService) -> None:
        self._websub = websub
        self._publishing = publishing

    def modes(self) -> Modes:
        return {"publish": Mode(answer=self.publish, is_open=True)}

    async def publish(self, call: Call) -> Response:
        """204, whatever the topics: a ping does not tell which topics the hub knows.

        With ``hub.content`` the topic is not fetched: the content is its news.
        """
        given = call.parameters
        request = _pinged(given)
        content = given.one("hub.content")
        if not content:
            await self._websub.publish(request)
        elif len(request.topics) + len(request.refused) > 1:
            raise InvalidValue("hub.url", "the topic of hub.content, only one")
        else:
            await self._publishing.take(
                request.topics[0], content.encode(), given.one("hub.signature")
            )
        return Response(status_code=HTTPStatus.NO_CONTENT)


def _pinged(given: Parameters) -> PublishRequest:
    named = [(name, value) for name in _TOPICS for value in given.all(name)]
    request = read_request(Form((("hub.mode", "publish"), *named)))
    assert isinstance(request, PublishRequest)  # noqa: S101 - its mode says so
    return request


_NUMBER = re.compile(r"[+-]?[0-9]{1,19}(?:\.[0-9]{0,19})?", re.ASCII)
MOST_HEADERS = 30
LONGEST_HEADER = 1_024
_NOT_SHOWN = frozenset(
    {
        *("authorization", "cookie", "host", "user-agent", "forwarded", "x-real-ip"),
        *("content-type", "content-length", "content-encoding", "transfer-encoding"),
        *("connection", "keep-alive", "te", "trailer", "upgrade", "expect", "via"),
        *("accept-encoding", "range", "if-range", "if-none-match", "if-match"),
        *("if-modified-since", "if-unmodified-since"),
    }
)
_NEVER_SHOWN = re.compile(
    r"proxy-|x-forwarded-|sec-|.*(?:token|secret|key|auth|passw|credential|session)"
)
_SECRET = frozenset({"authorization", "hub.secret", "hub.verify_token"})


class Subscribing:
    def __init__(
        self, superfeedr: SuperfeedrService, retrieval: RetrievalService
    ) -> None:
        self._superfeedr = superfeedr
        self._retrieval = retrieval

    def modes(self) -> Modes:
        return {
            "subscribe": Mode(
                answer=self.subscribe, scope=TokenScope.SUBSCRIBE, effect=Effect.CHANGES
            ),
            "unsubscribe": Mode(
                answer=self.unsubscribe,
                scope=TokenScope.UNSUBSCRIBE,
                effect=Effect.CHANGES,
            ),
        }

    async def subscribe(self, call: Call) -> Response:
        """204; 202 if the callback is asked later; ``retrieve``: 200 with entries."""
        given = call.parameters
        _check_lease(given)
        shows_feed = given.flag("retrieve")
        count = given.number("count", DEFAULT_COUNT, least=1, most=MOST_COUNT)
        wanted = SubscriptionRequest(
            account=call.principal.account.id,
            topic=given.topic(),
            callback=given.callback(),
            secret=given.one("hub.secret"),
            algorithm=_algorithm(given),
            format=None if call.format is None else Format(call.format.value),
            has_digest=given.flag("superfeedr.digest") or given.flag("digest"),
            shown=_shown(given),
            headers=shown_headers(call.request.headers),
            verify=_verify(given),
            verify_token=_verify_token(given),
        )
        made = await self._superfeedr.subscribe(wanted)
        if made is None:
            return _put_off(wanted.mode)
        draft_of(call.request).target_id = made.subscription.id
        if not shows_feed:
            return Response(status_code=HTTPStatus.NO_CONTENT)
        document = await self._retrieval.document(made.subscription, count)
        headers = {**SANDBOXED, "Content-Type": document.content_type}
        return Response(document.body, headers=headers)

    async def unsubscribe(self, call: Call) -> Response:
        given = call.parameters
        unwanted = SubscriptionRequest(
            mode=VerificationMode.UNSUBSCRIBE,
            account=call.principal.account.id,
            topic=given.topic(),
            callback=given.callback() if given.all("hub.callback") else "",
            verify=_verify(given),
            verify_token=_verify_token(given),
        )
        if await self._superfeedr.unsubscribe(unwanted):
            return Response(status_code=HTTPStatus.NO_CONTENT)
        return _put_off(unwanted.mode)


def _shown(given: Parameters) -> tuple[tuple[str, str], ...]:
    """The parameters that a publisher is shown who is asked about a subscription."""
    return tuple(
        (name, values[0])
        for name, values in given.values.items()
        if name not in _SECRET
    )


def shown_headers(headers: Headers) -> tuple[tuple[str, str], ...]:
    """The headers that describe a request, without those of its sender or its form."""
    return tuple(
        (name, combined_field(headers, name)[:LONGEST_HEADER])
        for name in dict.fromkeys(headers.keys())
        if name not in _NOT_SHOWN and not _NEVER_SHOWN.match(name)
    )[:MOST_HEADERS]


def _put_off(mode: VerificationMode) -> Response:
    message = "The callback will be asked."
    if mode is VerificationMode.UNSUBSCRIBE:
        message = "If there is such a subscription, its callback will be asked."
    return PlainTextResponse(f"{message}\n", status_code=HTTPStatus.ACCEPTED)


def _verify(given: Parameters) -> Verify | None:
    """How the callback is to be asked; None if the request does not say.

    PubSubHubbub 0.3 lets subscribers name several ways, the preferred one first.
    """
    named = ",".join(given.all("hub.verify")).split(",")[0].strip().lower()
    if not named:
        return None
    try:
        return Verify(named)
    except ValueError:
        raise InvalidValue("hub.verify", "sync or async", named) from None


def _check_lease(given: Parameters) -> None:
    """Raises `InvalidValue` for a lease that is not a number of seconds.

    Superfeedr 1.4: the lease itself is ignored, since subscriptions never expire.
    """
    value = given.one("hub.lease_seconds").strip()
    if value and _NUMBER.fullmatch(value) is None:
        raise InvalidValue("hub.lease_seconds", "a number of seconds", value)


def _verify_token(given: Parameters) -> str:
    token = given.one("hub.verify_token")
    if len(token) > LONGEST_VERIFY_TOKEN:
        expected = f"at most {LONGEST_VERIFY_TOKEN} characters"
        raise InvalidValue("hub.verify_token", expected)
    return token


def _algorithm(given: Parameters) -> str:
    """The algorithm of signatures: SHA-1 unless another is asked for.

    Clients of Superfeedr know only SHA-1. Raises `InvalidValue`.
    """
    name = given.one("hub.signature_algorithm").strip().lower()
    if name and name not in ALGORITHMS:
        expected = f"one of {', '.join(ALGORITHMS)}"
        raise InvalidValue("hub.signature_algorithm", expected, name)
    return name or OF_OLD
