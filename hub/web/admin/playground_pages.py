"""``/admin/playground`` and ``/account/playground``: the steps of WebSub, one by one.

Both messages of each step are shown, to be edited and sent again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from hub.runtime.clock import Clock
from hub.services.playground import (
    METHODS,
    MessageDraft,
    PlaygroundService,
    draft_of,
    header_lines,
    read_draft,
)
from hub.web.admin.page_access import (
    OperatorPages,
    PageAccess,
    area_of,
    in_both_areas,
    own_account,
    redirect,
    viewer_of,
)
from hub.web.api.playground_routes import EVERY_STEP, read_step
from hub.web.operation import HTML, Parameter
from hub.web.page_rendering import render_page
from hub.web.request_input import LARGEST_ID, form_choice, query_number
from hub.websub.playground_runs import (
    KEPT_BODY,
    ChallengeManner,
    DeliveryManner,
    MessageSender,
    PlaygroundExchange,
    PlaygroundRun,
    PlaygroundStep,
    form_lines,
)
from storage.records import TokenScope

OPEN_EXCHANGES: Final = 12
"""The newest exchanges, which are shown with both messages."""
SHOWN_BODY: Final = 4_096
"""Characters of a message's body that are shown unless the message is chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownExchange:
    """An exchange, and its request as it is to be edited.

    ``most``: characters of a body that are shown; 0: the exchange is folded.
    """

    it: PlaygroundExchange
    headers: str
    body: str
    most: int

    @property
    def is_open(self) -> bool:
        return self.most > 0


class PlaygroundPages(OperatorPages):
    def __init__(
        self, access: PageAccess, playground: PlaygroundService, clock: Clock
    ) -> None:
        super().__init__(access)
        self._playground = playground
        self._clock = clock

    @in_both_areas(
        method="GET",
        path="/playground",
        id="get_playground_page",
        summary="The WebSub playground: start a run, and the runs there are",
        answers={200: {HTML: str}, 303: None},
    )
    async def page(self, request: Request) -> Response:
        account = own_account(request, TokenScope.SUBSCRIBE)
        return render_page(
            "playground.html",
            section="Playground",
            viewer=viewer_of(request),
            now=self._clock.now(),
            runs=self._playground.latest(account),
        )

    @in_both_areas(
        method="POST",
        path="/playground",
        id="start_run_of_page",
        summary="Start a run of the playground",
        answers={303: None},
        problems=(403, 422, 429, 503),
    )
    async def start(self, request: Request) -> Response:
        own_account(request, TokenScope.SUBSCRIBE)
        viewer = viewer_of(request)
        run = await self._playground.start(
            viewer.principal,
            topic=viewer.form.get("topic", ""),
            hub=viewer.form.get("hub", ""),
        )
        if viewer.form.get("step") == EVERY_STEP:
            await self._playground.make_all(run)
        return _back(request, run)

    @in_both_areas(
        method="GET",
        path="/playground/{id}",
        id="get_run_page",
        summary="A run of the playground: its steps, and the messages of each",
        answers={200: {HTML: str}, 303: None},
        query=(
            Parameter(
                name="message",
                help="the number of one to be shown in full",
                kind="integer",
                default=0,
                least=0,
                largest=LARGEST_ID,
            ),
        ),
        problems=(403, 404, 422, 429, 503),
    )
    async def show(self, request: Request) -> Response:
        run = self._run(request)
        chosen = query_number(request, "message", 0, LARGEST_ID)
        return render_page(
            "playground_run.html",
            section="Playground",
            viewer=viewer_of(request),
            now=self._clock.now(),
            run=run,
            exchanges=[_shown(run, each, chosen) for each in run.exchanges],
            senders=_SENDERS,
            draft_headers=lambda draft: header_lines([*draft.headers.items()]),
            draft_body=lambda draft: form_lines(draft.body.decode()),
            steps=_steps(run),
            methods=METHODS,
            challenges=_CHALLENGES,
            deliveries=_DELIVERIES,
            drafts=self._drafts(run),
        )

    def _drafts(self, run: PlaygroundRun) -> dict[PlaygroundStep, MessageDraft]:
        """Usual requests by step; those to a hub only once one is known."""
        found = {}
        for step in (
            PlaygroundStep.DISCOVER,
            PlaygroundStep.SUBSCRIBE,
            PlaygroundStep.UNSUBSCRIBE,
            PlaygroundStep.PUBLISH,
        ):
            if run.hub or step is PlaygroundStep.DISCOVER:
                found[step] = self._playground.draft(run, step)
        return found

    @in_both_areas(
        method="POST",
        path="/playground/{id}/step",
        id="make_step_of_page",
        summary="Make a step of a run, or each in turn",
        answers={303: None},
        problems=(403, 404, 409, 422, 429, 503),
    )
    async def make(self, request: Request) -> Response:
        run, form = self._run(request), viewer_of(request).form
        before, step = run.last_number, form.get("step", "")
        if step == EVERY_STEP:
            await self._playground.make_all(run)
        else:
            await self._playground.make(
                run,
                read_step(step),
                title=form.get("title", ""),
                text=form.get("text", ""),
            )
        return _back(request, run, before + 1)

    @in_both_areas(
        method="POST",
        path="/playground/{id}/messages",
        id="send_message_of_page",
        summary="Send a request as it was edited",
        answers={303: None},
        problems=(403, 404, 422, 429, 503),
    )
    async def send(self, request: Request) -> Response:
        run, form = self._run(request), viewer_of(request).form
        before = run.last_number
        draft = read_draft(
            step=form.get("step", ""),
            method=form.get("method", ""),
            url=form.get("url", ""),
            headers=form.get("headers", ""),
            body=form.get("body", ""),
            signs=bool(form.get("sign")),
        )
        await self._playground.send(run, draft)
        return _back(request, run, before + 1)

    @in_both_areas(
        method="POST",
        path="/playground/{id}/manners",
        id="change_run_of_page",
        summary="Say how the callback of a run answers",
        answers={303: None},
        problems=(403, 404, 422, 429, 503),
    )
    async def change(self, request: Request) -> Response:
        run, form = self._run(request), viewer_of(request).form
        self._playground.set_manners(
            run,
            form_choice(form, "challenge", ChallengeManner, run.on_challenge),
            form_choice(form, "delivery", DeliveryManner, run.on_delivery),
            form.get("secret") or None,
        )
        return _back(request, run)

    @in_both_areas(
        method="POST",
        path="/playground/{id}/remove",
        id="remove_run_of_page",
        summary="Forget a run; its topic and its callback are gone",
        answers={303: None},
        problems=(403, 404, 429, 503),
    )
    async def remove(self, request: Request) -> Response:
        await self._playground.remove(self._run(request))
        return redirect(f"{area_of(request)}/playground")

    def _run(self, request: Request) -> PlaygroundRun:
        id = str(request.path_params["id"])
        return self._playground.get(id, own_account(request, TokenScope.SUBSCRIBE))


def _back(request: Request, run: PlaygroundRun, number: int = 0) -> Response:
    """Redirect to the run's page, to the message with that number if there is one."""
    place = f"#message-{number}" if 0 < number <= run.last_number else ""
    return redirect(f"{area_of(request)}/playground/{run.id}{place}")


def _shown(
    run: PlaygroundRun, exchange: PlaygroundExchange, chosen: int
) -> ShownExchange:
    headers, body = draft_of(exchange)
    is_new = exchange.number > run.last_number - OPEN_EXCHANGES
    most = SHOWN_BODY if is_new else 0
    if exchange.number == chosen:
        most = KEPT_BODY
    return ShownExchange(it=exchange, headers=headers, body=body[:most], most=most)


# --- in words ---

_SENDERS: Final = {
    MessageSender.PLAYGROUND: "The playground",
    MessageSender.HUB: "A hub",
    MessageSender.OTHERS: "Somebody else",
}

_ORDER: Final = (
    (
        PlaygroundStep.DISCOVER,
        "The topic is asked for the hub that it names, and for its own URL.",
    ),
    (
        PlaygroundStep.SUBSCRIBE,
        "The hub is asked to subscribe the callback to the topic.",
    ),
    (
        PlaygroundStep.VERIFY,
        "The hub asks the callback whether it wants that; it returns the challenge.",
    ),
    (PlaygroundStep.PUBLISH, "The hub is told that the topic has news."),
    (PlaygroundStep.FETCH, "The hub, or a subscriber, fetches the topic."),
    (PlaygroundStep.NOTIFY, "The hub posts what is new to the callback."),
)
_CHALLENGES: Final = {
    ChallengeManner.CONFIRM: "return it, if that was asked for on this page",
    ChallengeManner.CONFIRM_ALL: "return it, whoever asked for that",
    ChallengeManner.WRONG: "return another text",
    ChallengeManner.NOT_FOUND: "404",
    ChallengeManner.SLOW: "return it after 3 seconds",
}
_DELIVERIES: Final = {
    DeliveryManner.ACCEPT: "204",
    DeliveryManner.ERROR: "500",
    DeliveryManner.GONE: "410, which may end the subscription",
    DeliveryManner.REDIRECT: "302, which is not followed",
    DeliveryManner.SLOW: "204 after 3 seconds",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepState:
    """A step, and ``last``, its newest exchange; None if there is none."""

    step: PlaygroundStep
    meaning: str
    last: PlaygroundExchange | None


def _steps(run: PlaygroundRun) -> list[StepState]:
    last = {each.step: each for each in run.exchanges}
    return [
        StepState(step=step, meaning=meaning, last=last.get(step))
        for step, meaning in _ORDER
    ]
