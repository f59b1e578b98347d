"""The open hub on a real database, with a network that answers as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from msgspec.structs import replace

from hub.core.fetched import Fetched
from hub.http import Answer, Purpose, Request
from hub.ingest.fetcher import FetchRequest
from hub.ingest.prefetched_responses import PrefetchedResponses
from hub.publishing.local_topics import LocalTopics
from hub.services.open_hub_requests import WebSubService
from hub.websub.callback_challenge import CallbackChallenges
from hub.websub.intent_verification import IntentVerification
from hub.websub.ping_queue import PingQueue
from hub.websub.topic_admission import NamedHubs, OpenHub, TopicAdmission
from hub.websub.verification_loop import VerificationLoop
from protocols.websub.websub_parameters import SubscribeRequest, UnsubscribeRequest
from storage.contract import Storage
from storage.records import NewFeed, StoredFeed, Verification
from tests.support.clock import ManualClock
from tests.support.fetch_targets import an_answer
from tests.support.new_database import open_new
from tests.support.polled import InlineParser, a_limiter
from tests.support.services import FakePoller

HUB_URL = "https://hub.example/hub"
TOPIC = "https://feeds.example/topic"
CALLBACK = "https://reader.example/callback"
CHALLENGE = "the-challenge"
NAMES_HUB = f'<{HUB_URL}>; rel="hub"'


@dataclass
class ScriptedCallbacks:
    """Confirms every question, unless told otherwise. ``.exempt`` is not paced.

    ``answer``: a status, or what is raised.
    """

    answer: int | Exception = 200
    body: bytes = CHALLENGE.encode()
    complete: bool = True
    hangs_at: str = ""  # in whose URL that is gets no answer
    requests: list[Request] = field(default_factory=list)
    meanwhile: Callable[[], Awaitable[object]] | None = None  # once, before it answers

    async def send(self, request: Request) -> Answer:
        self.requests.append(request)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        if self.hangs_at and self.hangs_at in request.url:
            await asyncio.Event().wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return Answer(
            url=request.url,
            status=self.answer,
            headers={},
            body=self.body,
            complete=self.complete,
            milliseconds=1,
        )

    def is_exempt(self, host: str, purpose: Purpose) -> bool:
        return host.endswith(".exempt")

    @property
    def queries(self) -> list[dict[str, str]]:
        return [
            {name: values[-1] for name, values in parse_qs(query).items()}
            for query in (urlsplit(each.url).query for each in self.requests)
        ]

    @property
    def modes(self) -> list[str]:
        return [query["hub.mode"] for query in self.queries]


@dataclass
class ScriptedTopics:
    """Answers every fetch of a topic alike."""

    answer: Fetched = field(default_factory=lambda: named_by(NAMES_HUB))
    requests: list[FetchRequest] = field(default_factory=list)
    hook: Callable[[], None] = lambda: None
    meanwhile: Callable[[], Awaitable[object]] | None = None  # before it answers

    async def fetch(self, request: FetchRequest) -> Fetched:
        self.requests.append(request)
        self.hook()
        if self.meanwhile is not None:
            await self.meanwhile()
        return self.answer


def named_by(link: str, body: bytes = b"plain text") -> Fetched:
    return replace(an_answer(200, body), link=link)


@dataclass
class FakeAccounts:
    """Keeps what callbacks confirmed; ``refusal`` is why it cannot be had."""

    refusal: str = ""
    granted: list[Verification] = field(default_factory=list)

    async def grant(self, verification: Verification) -> str:
        self.granted.append(verification)
        return self.refusal


@dataclass
class OpenHubScene:
    storage: Storage
    clock: ManualClock
    poller: FakePoller
    callbacks: ScriptedCallbacks
    fetches: ScriptedTopics
    topics: TopicAdmission
    questions: CallbackChallenges
    intents: IntentVerification
    verifier: VerificationLoop
    pings: PingQueue
    service: WebSubService
    accounts: FakeAccounts

    async def add_feed(self, url: str = TOPIC, **more: object) -> StoredFeed:
        new = NewFeed(url=url, **more)  # type: ignore[arg-type]
        feed, _ = await self.storage.feeds.add(new, self.clock.now())
        return await self.poller.fetch_now(feed.id)

    async def request(self, request: SubscribeRequest | UnsubscribeRequest) -> str:
        """Hand a request in; its diagnostics token."""
        return (await self.service.request(request)).rpartition("/")[2]

    async def subscribe(self, **changes: object) -> Verification:
        """Ask to subscribe, let it be verified, and see what became of it."""
        token = await self.request(a_subscription_request(**changes))
        return await self.settle(token)

    async def unsubscribe(self) -> Verification:
        token = await self.request(UnsubscribeRequest(topic=TOPIC, callback=CALLBACK))
        return await self.settle(token)

    async def settle(self, token: str) -> Verification:
        for due in await self.storage.verifications.due(
            self.clock.now(), per_host=9, limit=9
        ):
            await self.intents.verify(due)
        found = await self.storage.verifications.find(token)
        assert found is not None
        return found


def a_subscription_request(**changes: object) -> SubscribeRequest:
    values = {"topic": TOPIC, "callback": CALLBACK, "lease_seconds": 300, **changes}
    return SubscribeRequest(**values)  # type: ignore[arg-type]


@asynccontextmanager
async def open_hub_scene(
    directory: Path, policy: OpenHub = OpenHub.KNOWN
) -> AsyncIterator[OpenHubScene]:
    storage = await open_new(directory / "hub.db")
    try:
        clock, callbacks, fetches = ManualClock(), ScriptedCallbacks(), ScriptedTopics()
        poller = FakePoller(storage, clock)
        topics = TopicAdmission(
            storage,
            poller,
            PrefetchedResponses(fetches),
            NamedHubs(InlineParser(), HUB_URL),
            a_limiter(clock),
            clock,
            policy,
            "Fanfare",
            LocalTopics(HUB_URL.removesuffix("/hub")),
        )
        limiter = a_limiter(clock)
        questions = CallbackChallenges(
            callbacks, clock, "Fanfare", limiter, challenge=lambda: CHALLENGE
        )
        accounts = FakeAccounts()
        intents = IntentVerification(
            storage, topics, questions, clock, accounts=accounts
        )
        verifier = VerificationLoop(storage, intents, questions, clock)
        pings = PingQueue(poller, clock)
        service = WebSubService(
            storage,
            verifier.wake,
            pings,
            clock,
            policy=policy,
            public_url="https://hub.example",
        )
        yield OpenHubScene(
            storage=storage,
            clock=clock,
            poller=poller,
            callbacks=callbacks,
            fetches=fetches,
            topics=topics,
            questions=questions,
            intents=intents,
            verifier=verifier,
            pings=pings,
            service=service,
            accounts=accounts,
        )
    finally:
        await storage.close()
