"""The open hub on a real database, with a network that answers as a test says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from hub.core.fetched import Fetched
from hub.ingest.prefetched_responses import PrefetchedResponses
from hub.publishing.local_topics import LocalTopics
from hub.runtime.work_leases import WorkClaims
from hub.services.open_hub_requests import WebSubService
from hub.websub.callback_challenge import CallbackChallenges
from hub.websub.intent_verification import IntentVerification
from hub.websub.ping_queue import PingQueue
from hub.websub.topic_admission import NamedHubs, OpenHub, TopicAdmission
from hub.websub.verification_loop import VerificationLoop
from protocols.websub.websub_parameters import SubscribeRequest, UnsubscribeRequest
from storage.contract import Storage
from storage.records import NewFeed, StoredFeed, Verification, WorkKind
from tests.support.chosen_engine import open_chosen
from tests.support.clock import ManualClock
from tests.support.fake_fetcher import FakeFetcher, InlineParser
from tests.support.fake_network import FakeNetwork, agree
from tests.support.fetch_targets import an_answer
from tests.support.polled import a_limiter, take_no_time
from tests.support.services import FakePoller
from tests.support.work_claims import claims_of, hold

HUB_URL = "https://hub.example/hub"
TOPIC = "https://feeds.example/topic"
CALLBACK = "https://reader.example/callback"
CHALLENGE = "the-challenge"
NAMES_HUB = f'<{HUB_URL}>; rel="hub"'


def named_by(link: str, body: bytes = b"plain text") -> Fetched:
    return replace(an_answer(200, body), link=link)


@dataclass
class FakeAccounts:
    """Keeps what callbacks confirmed; ``refusal``: why nothing can be granted."""

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
    callbacks: FakeNetwork
    fetches: FakeFetcher
    topics: TopicAdmission
    questions: CallbackChallenges
    intents: IntentVerification
    claims: WorkClaims
    verifier: VerificationLoop
    pings: PingQueue
    service: WebSubService
    accounts: FakeAccounts

    async def add_feed(self, url: str = TOPIC, **more: Any) -> StoredFeed:
        new = NewFeed(url=url, **more)
        feed, _ = await self.storage.feeds.add(new, self.clock.now())
        return await self.poller.fetch_now(feed.id)

    async def request(self, request: SubscribeRequest | UnsubscribeRequest) -> str:
        """Send a request to the hub; return its diagnostics token."""
        return (await self.service.request(request)).rpartition("/")[2]

    async def subscribe(self, **changes: Any) -> Verification:
        """Ask to subscribe, let it be verified, and return the outcome."""
        token = await self.request(a_subscription_request(**changes))
        return await self.settle(token)

    async def unsubscribe(self) -> Verification:
        token = await self.request(UnsubscribeRequest(topic=TOPIC, callback=CALLBACK))
        return await self.settle(token)

    async def settle(self, token: str) -> Verification:
        for due in await self.storage.verifications.due(
            self.clock.now(), per_host=9, limit=9
        ):
            await self.intents.verify(await self.hold(due))
        found = await self.storage.verifications.find(token)
        assert found is not None
        return found

    async def hold(self, verification: Verification) -> Verification:
        """Held, as the verifier hands it on."""
        kind, now = WorkKind.VERIFICATIONS, self.clock.now()
        lease_id = await hold(self.storage, kind, verification.id, now=now)
        return replace(verification, lease_id=lease_id)


def a_subscription_request(**changes: Any) -> SubscribeRequest:
    values = {"topic": TOPIC, "callback": CALLBACK, "lease_seconds": 300, **changes}
    return SubscribeRequest(**values)


@asynccontextmanager
async def open_hub_scene(
    directory: Path, policy: OpenHub = OpenHub.KNOWN
) -> AsyncIterator[OpenHubScene]:
    storage = await open_chosen(directory / "hub.db")
    try:
        clock, callbacks = ManualClock(), FakeNetwork(agree)
        fetches = FakeFetcher(clock, lambda request: named_by(NAMES_HUB))
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
        limiter = a_limiter(clock, take_no_time)
        questions = CallbackChallenges(
            callbacks, clock, "Fanfare", limiter, challenge=lambda: CHALLENGE
        )
        accounts = FakeAccounts()
        intents = IntentVerification(
            storage, topics, questions, clock, accounts=accounts
        )
        claims = claims_of(storage, clock)
        verifier = VerificationLoop(storage, intents, questions, clock, claims)
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
            claims=claims,
            verifier=verifier,
            pings=pings,
            service=service,
            accounts=accounts,
        )
    finally:
        await storage.close()
