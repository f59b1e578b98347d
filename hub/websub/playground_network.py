"""The network of a hub whose playground is in use.

Requests of the hub that concern a run are recorded with their answers: those to
callbacks elsewhere that subscribe to its topic. Requests to the hub's own address use a
connection like any other. If the hub cannot reach itself, because its address is
private or a proxy stands in the way, they are handed to the application inside this
process, and no guard is weakened for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Mapping,
    MutableMapping,
    Sequence,
)
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from msgspec.structs import replace

from hub import PRODUCT
from hub.http import Answer, Network, Purpose, Request, ResponseLimits
from hub.http.exchange import request_head, target_of
from hub.http.network_errors import NetworkError, TimedOut
from hub.http.response_parser import AnswerHeaders
from hub.publishing.local_topics import PLAYGROUND_PATH
from hub.runtime.clock import Clock
from hub.websub.playground_runs import (
    KEPT_BODY,
    HttpMessage,
    MessageSender,
    PlaygroundExchange,
    PlaygroundRun,
    PlaygroundRuns,
    PlaygroundStep,
    message_of,
    parameters_of,
    query_of,
    without_credentials,
)
from protocols.websub.exchange_review import (
    Remark,
    review_acknowledgement,
    review_confirmation,
    review_notification,
    review_question,
)

AsgiMessage = MutableMapping[str, Any]
AsgiApplication = Callable[
    [
        AsgiMessage,
        Callable[[], Awaitable[AsgiMessage]],
        Callable[[AsgiMessage], Awaitable[None]],
    ],
    Awaitable[None],
]
OWN_MARK: Final = "fanfare-playground"
"""A header of answers that the playground itself sends."""
_PROBE_LIMITS: Final = ResponseLimits(seconds=3.0, idle_seconds=3.0)
_HANDED_OVER: Final = frozenset({"/hub", "/robots.txt"})
_NOT_THERE: Final = "something else answers at the public URL"


class PlaygroundNetwork:
    """Sends requests through another network; see `hub.http.Network`."""

    def __init__(
        self, network: Network, runs: PlaygroundRuns, clock: Clock, public_url: str
    ) -> None:
        self._network = network
        self._runs = runs
        self._clock = clock
        self._public_url = public_url
        self._application: AsgiApplication | None = None
        self.user_agent = f"{PRODUCT} playground (+{public_url}/playground)"
        self.unreachable = ""
        """Why the hub cannot reach itself, according to the last `probe`; "" if it
        can."""

    def attach(self, application: AsgiApplication) -> None:
        """Set the application that answers requests to the hub's own address if it is
        unreachable."""
        self._application = application

    def is_exempt(self, host: str, purpose: Purpose) -> bool:
        """See `hub.http.Network`."""
        return self._network.is_exempt(host, purpose)

    def send(self, request: Request) -> Coroutine[Any, Any, Answer]:
        """See `hub.http.Network`."""
        if not self._runs:
            return self._network.send(request)
        if self.is_own(request.url):
            return self._send_to_itself(request)
        run = self._watching(request)
        if run is None:
            return self._network.send(request)
        return self._send_watched(run, request)

    async def send_unwatched(self, request: Request) -> Answer:
        """Like `send`, but the exchange is recorded by the caller."""
        if self.is_own(request.url):
            return await self._send_to_itself(request)
        return await self._network.send(request)

    # --- to the hub itself ---

    def is_own(self, url: str) -> bool:
        """Whether the URL is the hub's endpoint, or belongs to the playground."""
        if not url.startswith(self._public_url):
            return False
        path = urlsplit(url.removeprefix(self._public_url)).path
        return path.startswith(PLAYGROUND_PATH) or path in _HANDED_OVER

    async def probe(self, run: PlaygroundRun) -> str:
        """Why the hub does not reach itself by its public URL; "" if it does."""
        request = Request(
            method="GET",
            url=run.topic_url,
            purpose=Purpose.TOPIC,
            headers={"User-Agent": self.user_agent},
            limits=_PROBE_LIMITS,
            cuts_body=True,
        )
        try:
            answer = await self._network.send(request)
        except NetworkError as error:
            self.unreachable = error.reason
        else:
            self.unreachable = "" if OWN_MARK in answer.headers else _NOT_THERE
        return self.unreachable

    async def _send_to_itself(self, request: Request) -> Answer:
        if not self.unreachable or self._application is None:
            return await self._network.send(request)
        started = self._clock.monotonic()
        try:
            async with asyncio.timeout(request.limits.seconds):
                status, fields, body = await _call(
                    self._application, request, self._public_url
                )
        except TimeoutError:
            raise TimedOut("no answer in time") from None
        return Answer(
            url=request.url,
            status=status,
            headers=AnswerHeaders(fields),
            body=body,
            complete=True,
            milliseconds=round((self._clock.monotonic() - started) * 1000),
        )

    # --- to callbacks elsewhere ---

    def _watching(self, request: Request) -> PlaygroundRun | None:
        """The run whose topic a request to a callback concerns; None if there is
        none."""
        if request.purpose is not Purpose.CALLBACK:
            return None
        return self._runs.of_topic(_topic_of(request))

    async def _send_watched(self, run: PlaygroundRun, request: Request) -> Answer:
        at, started = self._clock.now(), self._clock.monotonic()
        answer, error = None, ""
        try:
            answer = await self._network.send(request)
            return answer
        except NetworkError as raised:
            error = raised.reason
            raise
        finally:
            if answer is not None or error:
                is_question = request.method == "GET"
                seconds = self._clock.monotonic() - started
                exchange = PlaygroundExchange(
                    step=(
                        PlaygroundStep.VERIFY if is_question else PlaygroundStep.NOTIFY
                    ),
                    sender=MessageSender.HUB,
                    at=at,
                    method=request.method,
                    url=request.url,
                    request=without_credentials(sent_message(request)),
                    response=None,
                    status=0,
                    milliseconds=round(seconds * 1000),
                    error=error,
                    remarks=review_sent(run, request),
                )
                run.record(with_answer(run, exchange, request, answer))


def with_answer(
    run: PlaygroundRun,
    exchange: PlaygroundExchange,
    request: Request,
    answer: Answer | None,
    remarks: Sequence[Remark] | None = None,
) -> PlaygroundExchange:
    """The exchange with its answer. ``remarks`` are on the answer; None: it is a
    callback's, and is reviewed here."""
    if answer is None:
        return exchange
    if remarks is None:
        remarks = _review_callback(request, answer)
    is_withheld = answer.is_exempt and not run.sees_all
    return replace(
        exchange,
        response=None if is_withheld else answered_message(answer),
        status=answer.status,
        milliseconds=answer.milliseconds,
        is_withheld=is_withheld,
        remarks=(*exchange.remarks, *remarks),
    )


def review_sent(run: PlaygroundRun, request: Request) -> tuple[Remark, ...]:
    """Remarks on a request to a callback."""
    if request.method == "GET":
        return review_question(parameters_of(query_of(request.url)), "")
    return review_notification(
        {name.lower(): value for name, value in request.headers.items()},
        request.body or b"",
        secret=run.secrets.get(request.url, ""),
        topic=run.topic_url if run.has_own_topic else "",
    )


def _review_callback(request: Request, answer: Answer) -> tuple[Remark, ...]:
    if request.method != "GET":
        return review_acknowledgement(answer.status)
    asked = parameters_of(query_of(request.url))
    return review_confirmation(
        asked.get("hub.mode", ""),
        answer.status,
        answer.headers,
        answer.body,
        asked.get("hub.challenge", ""),
    )


def _topic_of(request: Request) -> str:
    """The topic of a request to a callback; "" if it names none."""
    if request.method == "GET":
        if "hub.topic=" not in request.url:
            return ""
        return parameters_of(query_of(request.url)).get("hub.topic", "")
    return request.headers.get("X-PubSubHubbub-Topic", "")


# --- messages of values ---


def sent_message(request: Request) -> HttpMessage:
    """The message of a request, with its head as it goes over the wire."""
    body = request.body or b""
    try:
        head = request_head(request, target_of(request.url)).decode()
    except NetworkError:  # then it was not sent either
        return message_of(
            f"{request.method} {request.url}", [*request.headers.items()], body
        )
    line, *fields = head.removesuffix("\r\n\r\n").split("\r\n")
    headers = [
        (name, value) for name, _, value in (it.partition(": ") for it in fields)
    ]
    return message_of(line, headers, body)


def answered_message(answer: Answer) -> HttpMessage:
    headers = [*answer.headers.items()]
    return message_of(
        answer.status_line, headers, answer.body, is_whole=answer.complete
    )


# --- the application, without a connection ---


async def _call(
    application: AsgiApplication, request: Request, public_url: str
) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """The status, the headers and the beginning of the body of its answer."""
    target = target_of(request.url)
    path, _, query = target.path.removeprefix(urlsplit(public_url).path).partition("?")
    body, status = request.body or b"", 500
    fields: list[tuple[bytes, bytes]] = []
    pieces: list[bytes] = []

    async def receive() -> AsgiMessage:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: AsgiMessage) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            fields.extend((name.lower(), value) for name, value in message["headers"])
        elif sum(map(len, pieces)) < KEPT_BODY * 4:
            pieces.append(message.get("body", b""))

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "https" if target.server.is_tls else "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": _scope_headers(request.headers, target.authority, len(body)),
        "client": ("playground", 0),
        "server": (target.server.host, target.server.port),
        "state": {},
    }
    await application(scope, receive, send)
    return status, fields, b"".join(pieces)


def _scope_headers(
    headers: Mapping[str, str], authority: str, size: int
) -> list[tuple[bytes, bytes]]:
    fields = {"host": authority, **headers}
    if size:
        fields["content-length"] = str(size)
    return [(name.lower().encode(), value.encode()) for name, value in fields.items()]
