"""The WebSub playground: each step of discover, subscribe, verify, publish and notify,
made by this hub with a topic and a callback of its own, or with those of a developer.

What a developer sends goes through the address guard, at the pace of hosts, with a
deadline. Answers are shown as text, and are used for nothing else.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import structlog
from msgspec import MsgspecError

from hub import PRODUCT
from hub.http import Answer, Purpose, Request, ResponseLimits
from hub.http.network_errors import NetworkError
from hub.ingest.fetcher import RedirectRefused, redirect_target
from hub.limits.host_limiter import HostLimiter, RequestKind
from hub.limits.token_bucket import Rate, TokenBuckets
from hub.runtime.background import wait_for
from hub.runtime.clock import Clock
from hub.runtime.offloading import run_in_thread
from hub.services.feed_registration import FeedService
from hub.services.service_errors import Conflict, Gone, TooManyWaiting
from hub.services.token_authentication import Principal
from hub.websub.playground_network import (
    OWN_MARK,
    PlaygroundNetwork,
    review_sent,
    sent_message,
    with_answer,
)
from hub.websub.playground_runs import (
    KEPT,
    KEPT_BODY,
    MOST_RUNS,
    MOST_WAITING,
    SECRET_MARK,
    ChallengeManner,
    DeliveryManner,
    HttpMessage,
    MessageSender,
    PlaygroundExchange,
    PlaygroundRun,
    PlaygroundRuns,
    PlaygroundStep,
    form_body,
    form_lines,
    form_text,
    message_of,
    pack_run,
    parameters_of,
    without_credentials,
    without_secret,
)
from protocols.http import ACCEPT
from protocols.protocol_errors import InvalidValue
from protocols.urls import host_name
from protocols.websub.callbacks import read_callback, read_web_url
from protocols.websub.exchange_review import (
    Remark,
    TopicLinks,
    links_of_topic,
    review_acknowledgement,
    review_confirmation,
    review_hub_answer,
    review_hub_request,
    review_notification,
    review_question,
    review_topic,
)
from protocols.websub.signatures import ALGORITHMS, sign
from protocols.websub.subscribing import CONFIRMATION_TYPE
from protocols.websub.websub_parameters import LONGEST_SECRET
from storage.contract import Storage
from storage.errors import StorageError
from storage.records import AccountId, FeedFilter, FeedSort

FORM: Final = "application/x-www-form-urlencoded"
LIMITS: Final = ResponseLimits(seconds=20.0, idle_seconds=10.0)
METHODS: Final = ("GET", "HEAD", "POST")
MOST_HEADERS: Final = 40
LONGEST_DRAFT: Final = 64 * 1024
LONGEST_TITLE: Final = 200
LONGEST_TURN: Final = 10.0
"""Seconds for which a request waits at most for the turn of its host."""
SENDING: Final = Rate(per_second=0.5, burst=30.0)
"""Requests that the playground sends for one account."""
LEASE: Final = 86_400
"""The lease that is requested, in seconds."""
SLOWLY: Final = 3.0
"""Seconds after which the callback answers if it is set to be slow."""
LOOK_SECONDS: Final = 60.0
SAVE_SECONDS: Final = 1.0
"""Seconds for which changes of runs are gathered before they are written."""
LONGEST_LAST_SAVE: Final = 0.5
PATIENCE: Final = 8.0
"""Seconds for which a step waits for the messages that it causes."""
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SIGNATURE: Final = "x-hub-signature"
_NOT_GIVEN: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "upgrade"}
)
_PURPOSES: Final[Mapping[PlaygroundStep, Purpose]] = {
    PlaygroundStep.DISCOVER: Purpose.TOPIC,
    PlaygroundStep.FETCH: Purpose.TOPIC,
    PlaygroundStep.SUBSCRIBE: Purpose.HUB,
    PlaygroundStep.UNSUBSCRIBE: Purpose.HUB,
    PlaygroundStep.PUBLISH: Purpose.HUB,
    PlaygroundStep.VERIFY: Purpose.CALLBACK,
    PlaygroundStep.NOTIFY: Purpose.CALLBACK,
}
MADE_HERE: Final = (
    PlaygroundStep.DISCOVER,
    PlaygroundStep.SUBSCRIBE,
    PlaygroundStep.UNSUBSCRIBE,
    PlaygroundStep.PUBLISH,
)
"""Steps that the playground begins; hubs cause the others."""
_OF_HUB: Final = MADE_HERE[1:]
_OF_CALLBACK: Final = (PlaygroundStep.VERIFY, PlaygroundStep.NOTIFY)
_BRINGS: Final[Mapping[PlaygroundStep, PlaygroundStep]] = {
    PlaygroundStep.SUBSCRIBE: PlaygroundStep.VERIFY,
    PlaygroundStep.UNSUBSCRIBE: PlaygroundStep.VERIFY,
    PlaygroundStep.PUBLISH: PlaygroundStep.NOTIFY,
}
"""The messages that hubs send in answer to these steps."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDraft:
    """A request to be sent as somebody wrote it. ``signs``: sign its body, in place of
    the signature that is written."""

    step: PlaygroundStep
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes = b""
    signs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedRequest:
    """A request to a callback or a topic of the playground. ``headers`` are as they
    came, in order; ``target`` is its path and query."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""

    @property
    def fields(self) -> dict[str, str]:
        """The headers by name in lower case; several lines of one name become a
        list."""
        found: dict[str, str] = {}
        for name, value in self.headers:
            low = name.lower()
            found[low] = f"{found[low]}, {value}" if low in found else value
        return found

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]

    @property
    def message(self) -> HttpMessage:
        line = f"{self.method} {self.target} HTTP/1.1"
        return without_credentials(message_of(line, self.headers, self.body))


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenAnswer:
    """The answer of the playground to a request."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def message(self) -> HttpMessage:
        line = f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}"
        return message_of(line, [*self.headers.items()], self.body)


class PlaygroundService:
    def __init__(
        self,
        runs: PlaygroundRuns,
        network: PlaygroundNetwork,
        hosts: HostLimiter,
        feeds: FeedService,
        storage: Storage,
        clock: Clock,
    ) -> None:
        """``hosts``: sets the pace of requests to hosts of callbacks."""
        self._runs = runs
        self._network = network
        self._hosts = hosts
        self._feeds = feeds
        self._storage = storage
        self._clock = clock
        self._sent: TokenBuckets[AccountId] = TokenBuckets(1_000)
        self._is_loaded = False
        self.patience = PATIENCE
        self.slowly = SLOWLY

    @property
    def public_url(self) -> str:
        return self._runs.public_url

    # --- runs ---

    async def start(
        self, principal: Principal, *, topic: str = "", hub: str = ""
    ) -> PlaygroundRun:
        """Start a run. ``topic`` "": one of the playground's own; ``hub``: the hub of
        the topic, "" for this hub. The account's least recently used run is removed to
        make room.

        Raises `InvalidValue`, and `TooManyWaiting` if only runs of others could make
        room.
        """
        self._require_loaded()
        topic = read_web_url(topic, "topic").partition("#")[0] if topic.strip() else ""
        hub = read_callback(hub, "hub") if hub.strip() else ""
        while surplus := self._runs.surplus(principal.account.id):
            await self.remove(surplus)
        if self._runs.is_full:
            raise TooManyWaiting(f"{MOST_RUNS} runs are kept, all of other accounts")
        run = self._runs.start(
            principal.account, topic=topic, hub=hub, sees_all=principal.is_admin
        )
        run.unreachable = await self._network.probe(run)
        log.info("playground_run_started", account=principal.account.name)
        return run

    def get(self, id: str, account: AccountId | None) -> PlaygroundRun:
        """A run. Raises `NotFound`, also if it belongs to another account than the
        given one, and `TooManyWaiting` while the runs are not loaded yet."""
        self._require_loaded()
        return self._runs.get(id, account)

    def latest(self, account: AccountId | None) -> list[PlaygroundRun]:
        return self._runs.of(account)

    def set_manners(
        self,
        run: PlaygroundRun,
        on_challenge: ChallengeManner | None = None,
        on_delivery: DeliveryManner | None = None,
        secret: str | None = None,
    ) -> None:
        """Set how the run's callback answers, and the secret that it expects; None:
        unchanged.

        Raises `InvalidValue`.
        """
        if secret is not None and len(secret.encode()) > LONGEST_SECRET:
            raise InvalidValue("secret", f"at most {LONGEST_SECRET} bytes")
        run.on_challenge = on_challenge or run.on_challenge
        run.on_delivery = on_delivery or run.on_delivery
        run.touch()
        if secret is not None:
            run.secret = secret
            run.note_secret(run.callback_url, secret)

    async def remove(self, run: PlaygroundRun) -> None:
        """Remove a run: its topic and its callback answer 410 from now on. The hub
        stops polling the topic, and ends its subscriptions."""
        await self._storage.playground.remove(run.id)
        self._runs.remove(run)
        feed = await self._storage.feeds.find_open(run.topic_url)
        if feed is not None:
            await self._feeds.remove(feed.id)

    async def load(self) -> None:
        """Load the stored runs. Until that is done, no run is reported as gone. Raises
        `StorageError`."""
        stored = await self._storage.playground.since(self._clock.now() - KEPT)
        for each in stored[:MOST_RUNS]:
            try:
                self._runs.restore(each)
            except MsgspecError:
                log.warning("playground_run_not_read", id=each.id)
        self._is_loaded = True

    def _require_loaded(self) -> None:
        if not self._is_loaded:
            raise TooManyWaiting("the runs of the playground cannot be read now")

    async def run(self) -> None:
        """Save runs that changed, and remove expired ones, until cancelled; first
        remove the topics of runs that are not stored."""
        is_swept = False
        try:
            while True:
                try:
                    if not self._is_loaded:
                        await self.load()
                    is_swept = is_swept or await self._sweep()
                    for each in self._runs.expired():
                        await self.remove(each)
                except StorageError as error:
                    log.warning("playground_not_tidied", error=str(error))
                await self._save_for(LOOK_SECONDS)
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_LAST_SAVE):
                    await self.save()

    async def _save_for(self, seconds: float) -> None:
        """Save changed runs for so many seconds, with pauses in between."""
        until = self._clock.monotonic() + seconds
        while (left := until - self._clock.monotonic()) > 0:
            await wait_for(self._runs.unsaved, left)
            await asyncio.sleep(min(SAVE_SECONDS, left))
            await self.save()

    async def save(self) -> None:
        """Save the runs that changed; if that fails, it is tried again later."""
        runs = self._runs.take_unsaved()
        if not runs:
            return
        try:
            await self._storage.playground.save([pack_run(each) for each in runs])
        except StorageError as error:
            log.warning("playground_not_saved", error=str(error))
            for each in runs:
                each.touch()

    async def _sweep(self) -> bool:
        prefix = self._runs.topic_prefix
        wanted = FeedFilter(text=urlsplit(prefix).path)
        page = await self._storage.feed_selections.page(
            wanted, FeedSort.ID, after=None, limit=100
        )
        for each in page.feeds:
            is_left = each.url.startswith(prefix)
            if is_left and self._runs.of_topic(each.url) is None:
                await self._feeds.remove(each.id)
        return True

    # --- steps ---

    async def make(
        self,
        run: PlaygroundRun,
        step: PlaygroundStep,
        *,
        title: str = "",
        text: str = "",
    ) -> PlaygroundExchange:
        """Make the usual request of a step, and wait a few seconds for the messages
        that it causes; returns the exchange with the hub. ``title`` and ``text`` are
        those of the entry that is published first, if the topic is the run's own.

        Raises `InvalidValue`, `Conflict` and `TooManyWaiting`.
        """
        if len(title) > LONGEST_TITLE:
            raise InvalidValue("title", f"at most {LONGEST_TITLE} characters")
        if len(text) > LONGEST_DRAFT:
            raise InvalidValue("text", f"at most {LONGEST_DRAFT} characters")
        draft, entry = self.draft(run, step), None
        if step is PlaygroundStep.PUBLISH and run.has_own_topic:
            entry = run.publish(title.strip(), text, self._clock.now())
        before = run.last_number
        try:
            made = await self.send(run, draft)
        except (InvalidValue, TooManyWaiting):
            if entry is not None and run.last_number == before:
                run.withdraw(entry)
            raise
        if step in _BRINGS and 200 <= made.status < 300:
            await self.wait_for(run, _BRINGS[step], before)
        return made

    async def make_all(self, run: PlaygroundRun) -> None:
        """Make each step in turn, until one has no effect.

        Raises `InvalidValue` and `TooManyWaiting`.
        """
        before = run.last_number
        await self.make(run, PlaygroundStep.DISCOVER)
        if not run.hub:
            return
        await self.make(run, PlaygroundStep.SUBSCRIBE)
        if any(each.step is PlaygroundStep.VERIFY for each in run.since(before)):
            await self.make(run, PlaygroundStep.PUBLISH)

    async def wait_for(
        self, run: PlaygroundRun, step: PlaygroundStep, after: int
    ) -> bool:
        """Whether a message of a step comes within a few seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.patience):
                while not any(each.step is step for each in run.since(after)):
                    run.changed.clear()
                    await wait_for(run.changed, None)
                return True
        return False

    def draft(self, run: PlaygroundRun, step: PlaygroundStep) -> MessageDraft:
        """The usual request of a step. Raises `InvalidValue`, and `Conflict` if no hub
        has been found yet."""
        if step is PlaygroundStep.DISCOVER:
            return MessageDraft(
                step=step,
                method="GET",
                url=run.topic,
                headers={"User-Agent": self._network.user_agent, "Accept": ACCEPT},
            )
        if step not in _OF_HUB:
            expected = f"one of {', '.join(MADE_HERE)}"
            raise InvalidValue("step", expected, step)
        if not run.hub:
            raise Conflict("no hub is known yet: discover the topic first")
        return MessageDraft(
            step=step,
            method="POST",
            url=run.hub,
            headers={"User-Agent": self._network.user_agent, "Content-Type": FORM},
            body=form_body(_parameters(run, step)).encode(),
        )

    async def send(self, run: PlaygroundRun, draft: MessageDraft) -> PlaygroundExchange:
        """Send a request as somebody wrote it, along the redirects that WebSub allows;
        returns the last exchange.

        Raises `InvalidValue` and `TooManyWaiting`.
        """
        exchange, answer = await self._exchange(run, draft)
        visited = [draft.url]
        # A redirect that is refused, or leads to no valid URL, ends it.
        with suppress(RedirectRefused, InvalidValue):
            while location := _location(draft.step, answer):
                target = redirect_target(draft.url, location, visited)
                visited.append(target)
                draft = replace(draft, url=target)
                exchange, answer = await self._exchange(run, draft)
        return exchange

    async def _exchange(
        self, run: PlaygroundRun, draft: MessageDraft
    ) -> tuple[PlaygroundExchange, Answer | None]:
        now = self._clock.monotonic()
        allowance = self._sent.of(run.account.id, SENDING, now)
        if not run.sees_all and allowance.take(now):
            raise TooManyWaiting("too many requests of the playground; wait a little")
        request = self._request(run, draft)
        if not self._network.is_own(request.url):
            await self._wait_for_turn(request.url)
        at, started = self._clock.now(), self._clock.monotonic()
        answer, error = None, ""
        try:
            answer = await self._network.send_unwatched(request)
        except NetworkError as raised:
            error = raised.reason
        exchange = PlaygroundExchange(
            step=draft.step,
            sender=MessageSender.PLAYGROUND,
            at=at,
            method=request.method,
            url=request.url,
            request=sent_message(request),
            response=None,
            status=0,
            milliseconds=round((self._clock.monotonic() - started) * 1000),
            error=error,
            remarks=_review_request(run, draft.step, request),
        )
        remarks = await self._review_answer(run, draft.step, request, answer)
        if answer is not None and OWN_MARK in answer.headers:
            noted = self._noted_on_arrival(run, request)
            if noted is not None:
                return noted, answer
        return run.record(with_answer(run, exchange, request, answer, remarks)), answer

    def _noted_on_arrival(
        self, run: PlaygroundRun, request: Request
    ) -> PlaygroundExchange | None:
        """The exchange that the run's own callback recorded, if the request went
        there."""
        if self._runs.of_callback(request.url) is not run:
            return None
        return next(
            (it for it in reversed(run.exchanges) if it.url == request.url), None
        )

    def _request(self, run: PlaygroundRun, draft: MessageDraft) -> Request:
        """The request of a draft. Raises `InvalidValue`."""
        body, headers = draft.body, dict(draft.headers)
        url = read_web_url(draft.url, "url").partition("#")[0]
        if draft.method not in METHODS:
            raise InvalidValue("method", f"one of {', '.join(METHODS)}", draft.method)
        if len(body) > LONGEST_DRAFT:
            raise InvalidValue("body", f"at most {LONGEST_DRAFT} bytes")
        if draft.step in _OF_HUB:
            body = self._with_secret(run, draft.step, body)
        if draft.signs:
            _sign(headers, run.secrets.get(url, run.secret), body)
        return Request(
            method=draft.method,
            url=url,
            purpose=_PURPOSES[draft.step],
            headers=headers,
            body=body if draft.method == "POST" else None,
            limits=LIMITS,
            cuts_body=True,
            cut=KEPT_BODY,
        )

    def _with_secret(
        self, run: PlaygroundRun, step: PlaygroundStep, body: bytes
    ) -> bytes:
        """The form with the run's secret in place of its mark; a secret that is written
        there becomes the run's. The request is noted, because the callback confirms
        nothing else.

        Raises `InvalidValue`.
        """
        form = dict(parameters_of(body.decode("utf-8", "replace")))
        mode, callback = form.get("hub.mode", ""), form.get("hub.callback", "")
        if callback.partition("?")[0] == run.callback_url:
            run.want(mode, form.get("hub.topic", ""))
        secret = form.get("hub.secret", "")
        is_marked = secret == SECRET_MARK
        if is_marked:
            secret = run.secrets.get(callback, "") or run.secret
        if mode == "subscribe":
            run.note_secret(callback, secret)
        if not is_marked:
            return body
        form["hub.secret"] = secret
        return form_body(form_text(form)).encode()

    async def _wait_for_turn(self, url: str) -> None:
        try:
            async with asyncio.timeout(LONGEST_TURN):
                await self._hosts.wait(host_name(url), RequestKind.TEST)
        except TimeoutError:
            raise TooManyWaiting(
                "too many requests are waiting for this host"
            ) from None

    async def _review_answer(
        self,
        run: PlaygroundRun,
        step: PlaygroundStep,
        request: Request,
        answer: Answer | None,
    ) -> Sequence[Remark] | None:
        """Remarks on an answer; None for a callback's, which is reviewed by what it was
        asked."""
        if answer is None or step in _OF_CALLBACK:
            return None
        if step in _OF_HUB:
            form = parameters_of((request.body or b"").decode("utf-8", "replace"))
            mode = form.get("hub.mode", "")
            return review_hub_answer(mode, answer.status, answer.headers)
        links = await self._links(request.url, answer)
        if step is PlaygroundStep.DISCOVER and 200 <= answer.status < 300:
            run.hub = _chosen(links.hubs)
            if not run.has_own_topic and len(links.selves) == 1:
                run.topic = links.selves[0]
        return review_topic(request.url, answer.status, links)

    async def _links(self, url: str, answer: Answer) -> TopicLinks:
        headers, body = dict(answer.headers), answer.body
        return await run_in_thread(lambda: links_of_topic(url, headers, body))

    # --- what comes from outside ---

    def topic_at(self, token: str) -> PlaygroundRun:
        """The run of a topic. Raises `Gone` and `TooManyWaiting`."""
        self._require_loaded()
        run = self._runs.topic_at(token)
        if run is None:
            raise Gone("there is no such topic any more")
        return run

    def note_fetch(
        self, run: PlaygroundRun, received: ReceivedRequest, answer: GivenAnswer
    ) -> None:
        """Record that somebody has fetched the topic of a run."""
        if self._is_of_playground(received) or not self._may_arrive(run):
            return
        is_hub = received.fields.get("user-agent", "").startswith(PRODUCT)
        run.record(
            PlaygroundExchange(
                step=PlaygroundStep.FETCH,
                sender=MessageSender.HUB if is_hub else MessageSender.OTHERS,
                at=self._clock.now(),
                method=received.method,
                url=run.topic_url,
                request=received.message,
                response=answer.message,
                status=answer.status,
                milliseconds=0,
            )
        )

    def _is_of_playground(self, received: ReceivedRequest) -> bool:
        return received.fields.get("user-agent", "") == self._network.user_agent

    def _may_arrive(self, run: PlaygroundRun) -> bool:
        return not run.arrivals.take(self._clock.monotonic())

    @property
    def is_watching(self) -> bool:
        """Whether a request to the hub may concern a topic of the playground."""
        return bool(self._runs)

    def note_hub_request(self, received: ReceivedRequest, answer: GivenAnswer) -> None:
        """Record a request to the hub, if it concerns a topic of the playground."""
        if self._is_of_playground(received):
            return
        body = parameters_of(received.body.decode("utf-8", "replace"))
        form = {**parameters_of(received.query), **body}
        topic = form.get("hub.topic") or form.get("hub.url", "")
        run = self._runs.of_topic(topic)
        if run is None or not self._may_arrive(run):
            return
        mode, url = form.get("hub.mode", ""), self._runs.public_url + received.target
        if mode == "subscribe":
            run.note_secret(form.get("hub.callback", ""), form.get("hub.secret", ""))
        step = next((it for it in _OF_HUB if it == mode), PlaygroundStep.SUBSCRIBE)
        fields = {name.lower(): value for name, value in answer.headers.items()}
        run.record(
            PlaygroundExchange(
                step=step,
                sender=MessageSender.OTHERS,
                at=self._clock.now(),
                method=received.method,
                url=without_secret(url),
                request=received.message,
                response=answer.message,
                status=answer.status,
                milliseconds=0,
                remarks=(
                    *review_hub_request(url, form),
                    *review_hub_answer(mode, answer.status, fields),
                ),
            )
        )

    async def take(self, token: str, received: ReceivedRequest) -> GivenAnswer:
        """The answer of a callback of the playground.

        Raises `Gone` and `TooManyWaiting`.
        """
        self._require_loaded()
        run = self._runs.callback_at(token)
        if run is None:
            raise Gone("there is no such callback any more")
        if not self._may_arrive(run) or run.waiting >= MOST_WAITING:
            raise TooManyWaiting("too many requests to this callback")
        is_question = received.method == "GET"
        step = PlaygroundStep.VERIFY if is_question else PlaygroundStep.NOTIFY
        answer = self._confirm(run, received) if is_question else _accept(run)
        at, started = self._clock.now(), self._clock.monotonic()
        if _is_slow(run, step):
            await self._dawdle(run)
        run.record(
            PlaygroundExchange(
                step=step,
                sender=self._sender(received),
                at=at,
                method=received.method,
                url=self._runs.public_url + received.target,
                request=received.message,
                response=answer.message,
                status=answer.status,
                milliseconds=round((self._clock.monotonic() - started) * 1000),
                remarks=_review_received(run, received, answer),
            )
        )
        return answer

    def _sender(self, received: ReceivedRequest) -> MessageSender:
        is_own = self._is_of_playground(received)
        return MessageSender.PLAYGROUND if is_own else MessageSender.HUB

    async def _dawdle(self, run: PlaygroundRun) -> None:
        run.waiting += 1
        try:
            await asyncio.sleep(self.slowly)
        finally:
            run.waiting -= 1

    def _confirm(self, run: PlaygroundRun, received: ReceivedRequest) -> GivenAnswer:
        asked = parameters_of(received.query)
        mode, topic = asked.get("hub.mode", ""), asked.get("hub.topic", "")
        if mode == "denied":
            return GivenAnswer(status=200, headers={"Content-Type": "text/plain"})
        is_wanted = run.on_challenge is ChallengeManner.CONFIRM_ALL
        is_wanted = is_wanted or (mode, topic) in run.wanted
        if not is_wanted or run.on_challenge is ChallengeManner.NOT_FOUND:
            return GivenAnswer(
                status=404,
                headers={"Content-Type": "text/plain"},
                body=b"There is no such subscription.\n",
            )
        is_wrong = run.on_challenge is ChallengeManner.WRONG
        challenge = "not the challenge" if is_wrong else asked.get("hub.challenge", "")
        headers = {
            "Content-Type": CONFIRMATION_TYPE,
            "X-Content-Type-Options": "nosniff",
        }
        return GivenAnswer(status=200, headers=headers, body=challenge[:1_024].encode())


def _accept(run: PlaygroundRun) -> GivenAnswer:
    match run.on_delivery:
        case DeliveryManner.ERROR:
            return GivenAnswer(status=500, headers={})
        case DeliveryManner.GONE:
            return GivenAnswer(status=410, headers={})
        case DeliveryManner.REDIRECT:
            return GivenAnswer(status=302, headers={"Location": run.callback_url})
        case _:
            return GivenAnswer(status=204, headers={})


def _is_slow(run: PlaygroundRun, step: PlaygroundStep) -> bool:
    if step is PlaygroundStep.VERIFY:
        return run.on_challenge is ChallengeManner.SLOW
    return run.on_delivery is DeliveryManner.SLOW


def _review_received(
    run: PlaygroundRun, received: ReceivedRequest, answer: GivenAnswer
) -> tuple[Remark, ...]:
    """Remarks on a request to the callback of a run, and on its answer."""
    if received.method != "GET":
        return (
            *review_notification(
                received.fields,
                received.body,
                secret=run.secrets.get(run.callback_url, ""),
                topic=run.topic,
            ),
            *review_acknowledgement(answer.status),
        )
    asked = parameters_of(received.query)
    mode = asked.get("hub.mode", "")
    topics = [topic for wanted, topic in run.wanted if wanted == mode]
    is_known = asked.get("hub.topic", "") in topics
    return (
        *review_question(asked, topics[-1] if topics and not is_known else ""),
        *review_confirmation(
            mode,
            answer.status,
            {name.lower(): value for name, value in answer.headers.items()},
            answer.body,
            asked.get("hub.challenge", ""),
        ),
    )


def _review_request(
    run: PlaygroundRun, step: PlaygroundStep, request: Request
) -> tuple[Remark, ...]:
    """Remarks on a request that the playground sends."""
    if step in _OF_CALLBACK:
        return review_sent(run, request)
    if step not in _OF_HUB:
        return ()
    body = (request.body or b"").decode("utf-8", "replace")
    return review_hub_request(request.url, parameters_of(body))


def _location(step: PlaygroundStep, answer: Answer | None) -> str:
    """The URL of a redirect that WebSub allows to follow; "" if there is none."""
    if answer is None:
        return ""
    followed: tuple[int, ...] = (307, 308)
    if step is PlaygroundStep.DISCOVER:
        followed = (301, 302, 303, 307, 308)
    elif step not in (PlaygroundStep.SUBSCRIBE, PlaygroundStep.UNSUBSCRIBE):
        return ""
    return answer.headers.get("location", "") if answer.status in followed else ""


def _chosen(hubs: Sequence[str]) -> str:
    """The hub to ask, of those that a topic names: https is preferred; "" if there is
    none."""
    secure = (each for each in hubs if each.startswith("https:"))
    return next(secure, "") or next(iter(hubs), "")


def _parameters(run: PlaygroundRun, step: PlaygroundStep) -> str:
    """The parameters of the usual request to a hub, one a line."""
    if step is PlaygroundStep.PUBLISH:
        return form_text({"hub.mode": "publish", "hub.url": run.topic})
    form = {
        "hub.mode": str(step),
        "hub.topic": run.topic,
        "hub.callback": run.callback_url,
    }
    if step is PlaygroundStep.SUBSCRIBE:
        form |= {"hub.lease_seconds": str(LEASE), "hub.secret": SECRET_MARK}
    return form_text(form)


def _sign(headers: dict[str, str], secret: str, body: bytes) -> None:
    """Sign with the algorithm of the present signature."""
    given = next(
        (value for name, value in headers.items() if name.lower() == _SIGNATURE), ""
    )
    for name in [each for each in headers if each.lower() == _SIGNATURE]:
        del headers[name]
    algorithm = given.partition("=")[0].strip().lower()
    algorithm = algorithm if algorithm in ALGORITHMS else "sha256"
    headers["X-Hub-Signature"] = sign(algorithm, secret, body)


# --- drafts, as people write them ---


def read_draft(
    *,
    step: str,
    method: str,
    url: str,
    headers: str,
    body: str,
    signs: bool = False,
) -> MessageDraft:
    """The draft in a form. ``headers``: one a line; a form body: one parameter a line.

    Raises `InvalidValue`.
    """
    try:
        read_step = PlaygroundStep(step)
    except ValueError:
        expected = f"one of {', '.join(PlaygroundStep)}"
        raise InvalidValue("step", expected, step) from None
    fields = _read_headers(headers)
    text = "\n".join(body.splitlines()) + ("\n" if body.endswith("\n") else "")
    if is_form(fields):
        text = form_body(text)
    return MessageDraft(
        step=read_step,
        method=method.strip().upper(),
        url=url.strip(),
        headers=fields,
        body=text.encode("utf-8", "replace"),
        signs=signs,
    )


def is_form(headers: Mapping[str, str]) -> bool:
    return any(
        name.lower() == "content-type" and value.lower().startswith(FORM)
        for name, value in headers.items()
    )


def _read_headers(text: str) -> dict[str, str]:
    """The headers in a text, one a line. Raises `InvalidValue`."""
    lines = [each for each in text.splitlines() if each.strip()]
    if len(lines) > MOST_HEADERS:
        raise InvalidValue("headers", f"at most {MOST_HEADERS} lines")
    found: dict[str, str] = {}
    for line in lines:
        name, separator, value = line.partition(":")
        if not separator or not _NAME.fullmatch(name):
            raise InvalidValue("headers", "lines of the form Name: value", line)
        if name.lower() in _NOT_GIVEN:  # the client sets them
            continue
        if not value.isprintable():
            raise InvalidValue("headers", "values without control characters", name)
        found[name] = value.strip()
    return found


def draft_of(exchange: PlaygroundExchange) -> tuple[str, str]:
    """Headers and body of a request, as text that can be edited."""
    kept = exchange.request.headers
    text = exchange.request.text
    return header_lines(kept), form_lines(text) if is_form(dict(kept)) else text


def header_lines(headers: Sequence[tuple[str, str]]) -> str:
    """Headers as text, one a line, without those that the client sets."""
    return "\n".join(
        f"{name}: {value}" for name, value in headers if name.lower() not in _NOT_GIVEN
    )
