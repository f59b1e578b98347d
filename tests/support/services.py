"""The use cases on a real database, with a poller that does as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from msgspec.structs import replace

from hub.core.fetched import Fetched
from hub.core.schedule.poll_period import Plan, PollingRules, explain
from hub.delivery.notifications import NotificationBody
from hub.http.guard import Guard
from hub.ingest.fetcher import FetchRequest
from hub.ingest.prefetched_responses import PrefetchedResponses, PushedContent
from hub.live.connection_quotas import divide_connections
from hub.live.live_stream import LiveStream
from hub.live.live_watch import LiveWatch
from hub.publishing.collection_builder import BuildOptions, CollectionBuilder
from hub.publishing.collection_store import CollectionStore
from hub.publishing.local_topics import LocalTopics
from hub.publishing.openfeeder_analytics import Analytics
from hub.publishing.page_visibility import PageKeeper
from hub.push.received_pushes import ReceivedPushes
from hub.runtime.metrics import Metrics
from hub.services import (
    CollectionService,
    FeedListService,
    FeedReportService,
    FeedService,
    FrontPageService,
    HintService,
    LiveService,
    MetricsService,
    OpenFeederService,
    OperationsService,
    PublicService,
    PublishingService,
    PushCallbackService,
    ReplayService,
    RetrievalService,
    SearchService,
    Services,
    SubscriptionService,
    SuperfeedrService,
    TokenService,
    TrackTopics,
    WebSubService,
)
from hub.services.openfeeder_documents import OpenFeederOptions
from hub.services.topic_addresses import AddressCheck
from hub.sites.feed_finder import LookupKind, LookupResult
from hub.websub.callback_challenge import ChallengeReply, Question
from hub.websub.ping_queue import PingQueue
from hub.websub.topic_admission import OpenHub
from protocols.feeds.feed_links import choose
from protocols.protocol_errors import FeedLink
from storage.contract import Storage
from storage.errors import NotFound
from storage.records import (
    Credentials,
    FeedId,
    FeedState,
    FetchCommit,
    Polling,
    StoredFeed,
    Subscription,
    VerificationTry,
)
from tests.support.clock import ManualClock
from tests.support.fetch_targets import an_answer
from tests.support.new_database import open_new

START = datetime(2026, 11, 21, tzinfo=UTC)


@dataclass
class FakePoller:
    """Each fetch commits ``outcome`` of the feed's polling state, or hangs."""

    storage: Storage
    clock: ManualClock
    outcome: Callable[[Polling], Polling] = lambda polling: replace(
        polling, code=200, entry_count=3, period=900.0
    )
    state: FeedState | None = None  # the feed's state once it was fetched
    format: str = "atom"
    hangs: bool = False
    removed: FeedId | None = None  # is not there any more when it is to be fetched
    under_way: int = 0
    most_at_once: int = 0
    fetched: list[FeedId] = field(default_factory=list)
    asked: list[FeedId] = field(default_factory=list)  # pinged, never fetched
    woken: int = 0

    async def fetch_now(self, feed_id: FeedId) -> StoredFeed:
        self.fetched.append(feed_id)
        self.under_way += 1
        self.most_at_once = max(self.most_at_once, self.under_way)
        try:
            return await self._fetch(feed_id)
        finally:
            self.under_way -= 1

    async def _fetch(self, feed_id: FeedId) -> StoredFeed:
        if self.hangs:
            await asyncio.Event().wait()
        if feed_id == self.removed:
            raise NotFound("feed", feed_id)
        feed = await self.storage.feeds.get(feed_id)
        assert feed is not None
        now = self.clock.now()
        polling = self.outcome(replace(feed.polling, last_fetch=now))
        await self.storage.log.commit(
            FetchCommit(
                feed_id=feed_id,
                at=now,
                next_fetch=now,
                polling=polling,
                state=self.state,
                title="A feed",
                format=self.format,
            )
        )
        found = await self.storage.feeds.get(feed_id)
        assert found is not None
        return found

    def explain(self, feed: StoredFeed, *, is_pushed: bool = False) -> Plan:
        now = self.clock.now()
        return explain(feed.polling, 1, PollingRules(), now, is_pushed=is_pushed)

    def ping(self, feed: StoredFeed) -> bool:
        self.asked.append(feed.id)
        return True

    def is_pinged(self, feed_id: FeedId) -> bool:
        return feed_id in self.asked

    @property
    def pinged(self) -> int:
        return len(self.asked)

    def wake(self) -> None:
        self.woken += 1


CONFIRMED = ChallengeReply(
    is_confirmed=True, is_final=True, last=VerificationTry(at=START, status=200)
)


@dataclass
class FakeAsker:
    """Callbacks answer as ``reply`` says, or not at all."""

    reply: ChallengeReply = CONFIRMED
    hangs: bool = False
    asked: list[Question] = field(default_factory=list)

    async def ask(
        self, verification: Question, *, tells_callback: bool = False
    ) -> ChallengeReply:
        assert tells_callback
        self.asked.append(verification)
        if self.hangs:
            await asyncio.Event().wait()
        return self.reply


class NoNetwork:
    """What is fetched all the same, `FakePoller` never asks for."""

    async def fetch(self, request: FetchRequest) -> Fetched:
        raise NotImplementedError


@dataclass
class FakeRedeliveries:
    """Keeps what is sent again; ``refusal`` is why a callback does not take it."""

    refusal: str = ""
    sent: list[tuple[Subscription, NotificationBody]] = field(default_factory=list)
    later: list[tuple[Subscription, NotificationBody]] = field(default_factory=list)

    async def send(self, subscription: Subscription, document: NotificationBody) -> str:
        self.sent.append((subscription, document))
        return self.refusal

    def send_later(
        self, subscription: Subscription, document: NotificationBody
    ) -> bool:
        self.later.append((subscription, document))
        return not self.refusal


PAGE = "https://example.org/page"
"""A page that names two feeds."""
BLOG = "https://example.org/blog"
"""A page that names one feed, on another host."""
FOLDER = "https://example.org/folder/"
"""A page that names one feed, on its own host."""


class FakeFinder:
    """Sees three pages; all else is out of result. ``provided`` are URLs."""

    def __init__(self) -> None:
        self.looked: list[tuple[str, Credentials | None]] = []
        self.provided: list[str] = []

    async def look(
        self,
        url: str,
        credentials: Credentials | None = None,
        kind: LookupKind = LookupKind.ANY,
    ) -> LookupResult:
        self.looked.append((url, credentials))
        named = {
            PAGE: (("https://a.example/", "A"), ("https://b.example/", "B")),
            BLOG: (("https://you.example/feed", ""),),
            FOLDER: (("https://example.org/folder/feed", ""),),
        }.get(url, ())
        return LookupResult(
            choice=choose([FeedLink(href=h, title=t) for h, t in named])
        )

    @contextmanager
    def provide(self, url: str, fetched: Fetched | None) -> Iterator[None]:
        self.provided.append(url)
        yield


class OneList:
    """Answers every request with a list of one feed."""

    async def fetch(self, request: FetchRequest) -> Fetched:
        outline = '<outline text="A" xmlUrl="https://a.example/feed"/>'
        body = f"<opml><body>{outline}</body></opml>".encode()
        return an_answer(200, body, url=request.url)


@dataclass
class Hub:
    """Everything a test of the use cases or of the web may want to reach."""

    services: Services
    storage: Storage
    poller: FakePoller
    clock: ManualClock
    directory: Path
    metrics: Metrics
    watch: LiveWatch
    finder: FakeFinder
    redeliveries: FakeRedeliveries
    asker: FakeAsker
    clock_warnings: list[str]


@asynccontextmanager
async def open_hub(
    directory: Path,
    *,
    is_stream_open: bool = True,
    most_connections: int = 100,
    stream_share: int = 100,
    most_topics: int = 100,
    heartbeat_seconds: float = 25.0,
    watch_seconds: float = 60.0,
    build_options: BuildOptions | None = None,
    tells_unlisted: bool = True,
    openfeeder_options: OpenFeederOptions | None = None,
    analytics: Analytics | None = None,
) -> AsyncIterator[Hub]:
    """The use cases over a new database; few names can be looked up."""
    known = {
        "example.org": "93.184.215.14",
        "you.example": "93.184.215.15",
        "inside.example": "10.0.0.9",
    }

    async def look_up(host: str) -> list[str]:
        if host not in known:
            raise OSError("no such name")
        return [known[host]]

    clock = ManualClock()
    metrics = Metrics()
    storage = await open_new(directory / "hub.db")
    try:
        poller = FakePoller(storage, clock)
        addresses = AddressCheck(topics=Guard(), callbacks=Guard(), lookup=look_up)
        live = LiveStream(
            storage.log,
            "http://hub.example/hub",
            await storage.log.end(),
            random=Random(1),
            metrics=metrics,
            clock=clock,
            quotas=divide_connections(most_connections, stream_share),
            heartbeat_seconds=heartbeat_seconds,
        )
        watch = LiveWatch(live, storage.feeds, storage.tokens, watch_seconds)
        finder = FakeFinder()
        tracks = TrackTopics(storage.tracking, clock, "http://hub.example")
        own = LocalTopics("http://hub.example")
        feeds = FeedService(
            storage,
            poller,
            addresses,
            clock,
            tracks,
            watch.wake,
            own,
            finder,
            finder,
        )
        retrieval = RetrievalService(
            storage,
            feeds,
            tracks,
            own,
            "http://hub.example/hub",
            tells_unlisted=tells_unlisted,
        )
        redeliveries = FakeRedeliveries()
        subscriptions = SubscriptionService(
            storage, feeds, addresses, clock, tracks, own
        )
        asker = FakeAsker()
        clock_warnings: list[str] = []
        store = CollectionStore(directory / "scp")
        store.open()
        builder = CollectionBuilder(
            storage,
            PageKeeper(storage.pages, clock, "http://hub.example"),
            store,
            clock,
            build_options or BuildOptions(),
            metrics,
            clock.sleep,
        )
        websub = WebSubService(
            storage,
            lambda: None,
            PingQueue(poller, clock),
            clock,
            policy=OpenHub.KNOWN,
            public_url="http://hub.example",
        )
        bringing = PushedContent(
            poller, PrefetchedResponses(NoNetwork()).provide_pushed, clock
        )
        deliveries = ReceivedPushes(storage, bringing, PingQueue(poller, clock), clock)
        services = Services(
            storage=storage,
            clock=clock,
            upstream=PushCallbackService(
                storage, deliveries, clock, lambda: None, is_on=True
            ),
            retrieval=retrieval,
            search=SearchService(
                storage, "http://hub.example", tells_unlisted=tells_unlisted
            ),
            replays=ReplayService(
                storage, retrieval, redeliveries, "http://hub.example"
            ),
            feeds=feeds,
            feed_reports=FeedReportService(storage, poller, clock),
            lists=FeedListService(OneList(), addresses, "Fanfare"),
            subscriptions=subscriptions,
            superfeedr=SuperfeedrService(
                storage,
                subscriptions,
                asker,
                clock,
                "http://hub.example",
                wake_verifier=lambda: None,
            ),
            operations=OperationsService(
                storage, clock, directory, lambda: "".join(clock_warnings)
            ),
            tokens=TokenService(storage.tokens, clock, watch.wake),
            tracks=tracks,
            metrics=MetricsService(storage, metrics, clock),
            front=FrontPageService(storage, clock, "http://hub.example"),
            publishing=PublishingService(storage.feeds, bringing, clock),
            live=LiveService(
                storage.feeds,
                live,
                tracks,
                is_open=is_stream_open,
                most_topics=most_topics,
                local_topics=own,
            ),
            public=PublicService(storage, "http://hub.example"),
            collections=CollectionService(
                builder, store, clock, "http://hub.example", is_on=True
            ),
            websub=websub,
            openfeeder=OpenFeederService(
                storage, clock, "http://hub.example", openfeeder_options
            ),
            hints=HintService(storage, websub),
            analytics=analytics or Analytics(),
        )
        yield Hub(
            *(services, storage, poller, clock, directory, metrics, watch),
            finder=finder,
            redeliveries=redeliveries,
            asker=asker,
            clock_warnings=clock_warnings,
        )
    finally:
        await storage.close()
