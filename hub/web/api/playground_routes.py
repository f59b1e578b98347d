"""``/api/playground``: runs of the WebSub playground, with all their messages."""

from __future__ import annotations

from http import HTTPStatus
from typing import Self

from starlette.requests import Request
from starlette.responses import Response

from hub.services.playground import (
    MADE_HERE,
    PlaygroundService,
    draft_of,
    read_draft,
)
from hub.web.authentication import own_account, principal_of
from hub.web.json_output import JsonObject, Time, json_response
from hub.web.operation import ApiOperation, Parameter, Routes
from hub.web.request_input import (
    LARGEST_ID,
    RequestBody,
    query_number,
    read_body,
)
from hub.websub.playground_runs import (
    ChallengeManner,
    DeliveryManner,
    HttpMessage,
    MessageSender,
    PlaygroundExchange,
    PlaygroundRun,
    PlaygroundStep,
)
from protocols.protocol_errors import InvalidValue
from protocols.websub.exchange_review import RemarkLevel
from storage.records import TokenScope

EVERY_STEP = "all"


class PlaygroundRunToStart(RequestBody):
    """The body of ``POST /api/playground``.

    ``topic`` "": one of the playground's own. ``hub``: the hub that this topic names;
    "": this hub.
    """

    topic: str = ""
    hub: str = ""


class PlaygroundStepToMake(RequestBody):
    """The body of ``POST /api/playground/{id}/steps``.

    ``step``: discover, subscribe, unsubscribe or publish; all: one after the other.
    ``title`` and ``text``: of the entry that is published, if the topic is the run's
    own.
    """

    step: str
    title: str = ""
    text: str = ""


class PlaygroundMessageToSend(RequestBody):
    """The body of ``POST /api/playground/{id}/messages``: a request as it is written.

    ``again``: the number of a message; parts that are not given are taken from it.
    ``headers``: one a line. A form is written as one parameter a line. ``sign``: add a
    signature of the body.
    """

    again: int | None = None
    step: str = ""
    method: str = ""
    url: str = ""
    headers: str | None = None
    body: str | None = None
    sign: bool = False


class PlaygroundManners(RequestBody):
    """The body of ``PATCH /api/playground/{id}``: what is not named stays as it is.

    ``challenge`` and ``delivery``: how the callback answers. ``secret``: the one that
    the callback checks deliveries with from now on; it is not shown.
    """

    challenge: ChallengeManner | None = None
    delivery: DeliveryManner | None = None
    secret: str | None = None


class RemarkJson(JsonObject):
    """What is right or wrong with a message; ``section``: that of WebSub, or ""."""

    level: RemarkLevel
    text: str
    section: str


class HttpMessageJson(JsonObject):
    """A request or an answer. ``body``: its beginning, as text; ``size``: its bytes."""

    line: str
    headers: list[list[str]]
    body: str
    size: int

    @classmethod
    def of_message(cls, message: HttpMessage) -> Self:
        return cls.of(
            message,
            headers=[[name, value] for name, value in message.headers],
            body=message.text,
        )


class PlaygroundExchangeJson(JsonObject):
    """A request and its answer.

    ``response`` is null if there is none, and ``error`` says why. It is null too if it
    is ``withheld``: it comes from an allowed network, and only operators are shown
    those.
    """

    number: int
    step: PlaygroundStep
    sender: MessageSender
    at: Time
    url: str
    request: HttpMessageJson
    response: HttpMessageJson | None
    status: int
    milliseconds: int
    error: str
    withheld: bool
    remarks: list[RemarkJson]

    @classmethod
    def of_exchange(cls, exchange: PlaygroundExchange) -> Self:
        answer = exchange.response
        return cls.of(
            exchange,
            request=HttpMessageJson.of_message(exchange.request),
            response=HttpMessageJson.of_message(answer) if answer else None,
            withheld=exchange.is_withheld,
            remarks=[RemarkJson.of(each) for each in exchange.remarks],
        )


class PlaygroundRunJson(JsonObject):
    """A run.

    ``own_topic`` and ``callback``: its URLs, which hubs may be given. ``hub``: the one
    that was found; "" until then. ``forgotten``: how many messages are no longer kept.
    ``self_unreachable``: why the hub does not reach its own public URL; "" if it does.
    """

    id: str
    account: str
    page: str
    created_at: Time
    expires_at: Time
    topic: str
    own_topic: str
    callback: str
    hub: str
    challenge: ChallengeManner
    delivery: DeliveryManner
    self_unreachable: str
    forgotten: int
    last: int

    @classmethod
    def of_run(cls, run: PlaygroundRun, page: str) -> Self:
        return cls.of(
            run,
            page=page,
            account=run.account.name,
            own_topic=run.topic_url,
            callback=run.callback_url,
            challenge=run.on_challenge,
            delivery=run.on_delivery,
            self_unreachable=run.unreachable,
            last=run.last_number,
        )


class PlaygroundRunsJson(JsonObject):
    runs: list[PlaygroundRunJson]


class PlaygroundReportJson(JsonObject):
    """A run with its messages, the oldest first."""

    run: PlaygroundRunJson
    exchanges: list[PlaygroundExchangeJson]


class PlaygroundRoutes(Routes):
    tag = "playground"

    def __init__(self, playground: PlaygroundService) -> None:
        self._playground = playground

    @ApiOperation(
        method="GET",
        path="/playground",
        id="list_playground_runs",
        scope=TokenScope.SUBSCRIBE,
        summary="List the account's runs of the WebSub playground, the last used first",
        description="With the scope `admin` those of all accounts.",
        answers={200: PlaygroundRunsJson},
    )
    async def page(self, request: Request) -> Response:
        runs = self._playground.latest(own_account(request))
        listed = [self._json(request, each) for each in runs]
        return json_response(PlaygroundRunsJson(runs=listed))

    @ApiOperation(
        method="POST",
        path="/playground",
        id="start_playground_run",
        scope=TokenScope.SUBSCRIBE,
        summary="Start a run: a callback and a topic of the hub's own",
        description='The body has `topic` (`""`: one of the playground), `hub` (the'
        ' one that this topic names, `""`: this hub). 201 with `id`, `page`, `topic`,'
        ' `own_topic`, `callback`, `hub` (`""` until one is discovered), `challenge`'
        " and `delivery` (how the callback answers), `expires_at`, `last` (the number"
        " of the last message), and `self_unreachable`, why the hub does not reach its"
        " own public URL.",
        body=PlaygroundRunToStart(),
        answers={201: PlaygroundRunJson},
    )
    async def start(self, request: Request) -> Response:
        asked = await read_body(request, PlaygroundRunToStart)
        run = await self._playground.start(
            principal_of(request), topic=asked.topic, hub=asked.hub
        )
        return json_response(self._json(request, run), HTTPStatus.CREATED)

    @ApiOperation(
        method="GET",
        path="/playground/{id}",
        id="get_playground_run",
        scope=TokenScope.SUBSCRIBE,
        summary="Show a run with its messages",
        description="The oldest first. Each has `number`, `step`, `sender`, `request`,"
        " `response`, `error`, and `remarks` with `level` (`good`, `note`, `bad`),"
        " `text` and `section` of WebSub. `withheld`: the answer is of an allowed"
        " network, which only operators are shown.",
        query=(
            Parameter(
                name="after",
                help="only messages with a higher number",
                kind="integer",
                default=0,
                least=0,
                largest=LARGEST_ID,
            ),
        ),
        answers={200: PlaygroundReportJson},
        problems=(404, 422),
    )
    async def show(self, request: Request) -> Response:
        run = self._run(request)
        return self._report(request, run, query_number(request, "after", 0, LARGEST_ID))

    @ApiOperation(
        method="PATCH",
        path="/playground/{id}",
        id="change_playground_run",
        scope=TokenScope.SUBSCRIBE,
        summary="Say how the callback of a run answers",
        description="The body has `challenge` (`confirm`, `confirm-all`,"
        " `wrong-challenge`, `not-found`, `slow`), `delivery` (`accept`, `error`,"
        " `gone`, `redirect`, `slow`), and the `secret` by which it checks signatures,"
        " which is not shown.",
        body=PlaygroundManners(challenge=ChallengeManner.WRONG),
        answers={200: PlaygroundRunJson},
        problems=(404,),
    )
    async def change(self, request: Request) -> Response:
        run, asked = self._run(request), await read_body(request, PlaygroundManners)
        self._playground.set_manners(run, asked.challenge, asked.delivery, asked.secret)
        return json_response(self._json(request, run))

    @ApiOperation(
        method="DELETE",
        path="/playground/{id}",
        id="remove_playground_run",
        scope=TokenScope.SUBSCRIBE,
        summary="Forget a run; its topic and its callback are gone (410)",
        description="The hub's subscriptions to the topic end.",
        answers={200: PlaygroundRunJson},
        problems=(404,),
    )
    async def remove(self, request: Request) -> Response:
        run = self._run(request)
        await self._playground.remove(run)
        return json_response(self._json(request, run))

    @ApiOperation(
        method="POST",
        path="/playground/{id}/steps",
        id="make_playground_step",
        scope=TokenScope.SUBSCRIBE,
        summary="Make a step of a run, or each in turn, and show what came of it",
        description="A `step` is `discover`, `subscribe`, `unsubscribe`, `publish`"
        " (with `title` and `text` of an entry), or `all`. It waits up to 8 s for what"
        " the hub does about it. The answer has the messages that passed. 409 before a"
        " hub is discovered, 503 if an account sends too much.",
        body=PlaygroundStepToMake(step="discover"),
        answers={200: PlaygroundReportJson},
        problems=(404, 409),
    )
    async def make(self, request: Request) -> Response:
        run, asked = self._run(request), await read_body(request, PlaygroundStepToMake)
        before = run.last_number
        if asked.step == EVERY_STEP:
            await self._playground.make_all(run)
        else:
            await self._playground.make(
                run, read_step(asked.step), title=asked.title, text=asked.text
            )
        return self._report(request, run, before)

    @ApiOperation(
        method="POST",
        path="/playground/{id}/messages",
        id="send_playground_message",
        scope=TokenScope.SUBSCRIBE,
        summary="Send a request as it is written, or a former one again",
        description="The body has `step`, `method` (`GET`, `HEAD`, `POST`), `url`,"
        " `headers` (one a line), `body` (up to 64 KiB; of a form one parameter a"
        " line, not encoded), `sign`; `again`: the number of a message whose parts are"
        " taken where none are given.",
        body=PlaygroundMessageToSend(again=1),
        answers={200: PlaygroundReportJson},
        problems=(404,),
    )
    async def send(self, request: Request) -> Response:
        run = self._run(request)
        asked = await read_body(request, PlaygroundMessageToSend)
        before = run.last_number
        step, method, url, headers, body = asked.step, asked.method, asked.url, "", ""
        if asked.again is not None:
            former = run.exchange(asked.again)
            headers, body = draft_of(former)
            step, url = step or former.step, url or former.url
            method = method or former.method
        draft = read_draft(
            step=step,
            method=method,
            url=url,
            headers=headers if asked.headers is None else asked.headers,
            body=body if asked.body is None else asked.body,
            signs=asked.sign,
        )
        await self._playground.send(run, draft)
        return self._report(request, run, before)

    def _run(self, request: Request) -> PlaygroundRun:
        id = str(request.path_params["id"])
        return self._playground.get(id, own_account(request))

    def _json(self, request: Request, run: PlaygroundRun) -> PlaygroundRunJson:
        area = "/admin" if principal_of(request).is_admin else "/account"
        page = f"{self._playground.public_url}{area}/playground/{run.id}"
        return PlaygroundRunJson.of_run(run, page)

    def _report(self, request: Request, run: PlaygroundRun, after: int) -> Response:
        exchanges = [PlaygroundExchangeJson.of_exchange(it) for it in run.since(after)]
        report = PlaygroundReportJson(run=self._json(request, run), exchanges=exchanges)
        return json_response(report)


def read_step(value: str) -> PlaygroundStep:
    """A step that the playground can begin. Raises `InvalidValue`."""
    if value not in MADE_HERE:
        expected = f"one of {', '.join(MADE_HERE)}, {EVERY_STEP}"
        raise InvalidValue("step", expected, value)
    return PlaygroundStep(value)
