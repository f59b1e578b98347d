"""The composition: the one place where the parts of the hub are made and connected.

`build_hub` reads from top to bottom as the hub works: feeds are fetched, entries are
delivered, topics are subscribed to, other hubs push, pages are published, and a server
offers all of it. Nothing begins to work before `hub.main` starts the background tasks.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random, SystemRandom
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from hub import PRODUCT
from hub.core.host_set import HostSet
from hub.core.push.used_hubs import UsedHubs
from hub.core.schedule.budget import Budget
from hub.core.status.feed_stats import WordList
from hub.delivery.asked_retries import AskedRetries
from hub.delivery.denials import Denials
from hub.delivery.digests import Digests
from hub.delivery.dispatcher import DeliveryLimits, Dispatcher
from hub.delivery.event_publisher import EventPublisher
from hub.delivery.notification_counter import NotificationCounter
from hub.delivery.redelivery import Redeliveries
from hub.feed_maintenance import Maintenance
from hub.housekeeping import Housekeeping
from hub.http import HttpNetwork, Network, Purpose, ResponseLimits
from hub.http.exchange import MEBIBYTE
from hub.http.guard import Guard
from hub.http.resolver import Lookup, SystemLookup
from hub.ingest.committer import load_detector
from hub.ingest.document_parser import Parser, WorkerParser
from hub.ingest.entry_sanitizer import WorkerSanitizer
from hub.ingest.fetch_pipeline import draw_jitter
from hub.ingest.fetcher import FeedFetcher, Fetcher, FetcherIdentity
from hub.ingest.polite_fetchers import RateLimitedFetcher, RobotsFetcher
from hub.ingest.poller import Poller
from hub.ingest.prefetched_responses import PrefetchedResponses, PushedContent
from hub.ingest.tracker import Tracker
from hub.limits.host_limiter import HostLimiter, RequestKind
from hub.limits.push_hub_limiter import HubLimiter
from hub.limits.token_bucket import Rate, per_minute
from hub.live.connection_quotas import divide_connections
from hub.live.live_stream import LiveStream
from hub.live.live_watch import LiveWatch
from hub.publishing.collection_builder import BuildOptions, CollectionBuilder
from hub.publishing.collection_publisher import CollectionPublisher
from hub.publishing.collection_store import COLLECTIONS_FOLDER, CollectionStore
from hub.publishing.local_topics import LocalTopics
from hub.publishing.openfeeder_analytics import Analytics, create_sink
from hub.publishing.openfeeder_gatekeeper import Gatekeeper
from hub.publishing.output_readers import OutputReaders
from hub.publishing.page_visibility import PageUpdater
from hub.push.push_subscriber import HubRequests, PollResumer, PushSubscriber
from hub.push.received_pushes import ReceivedPushes
from hub.runtime.background import BackgroundTask
from hub.runtime.clock import Clock, SystemClock
from hub.runtime.clock_watch import ClockWatch
from hub.runtime.event_log import EventLog
from hub.runtime.metrics import Metrics
from hub.runtime.node_membership import NodeMembership
from hub.runtime.work_leases import WorkClaims, WorkLeases
from hub.search.index_follower import SearchIndex
from hub.services import (
    AccountReportService,
    AuditTrail,
    CallbackTrialService,
    CollectionService,
    CommittedEntryService,
    ConnectionService,
    DeliveryListService,
    DeliveryReportService,
    EntryReportService,
    EventSubscriptionService,
    FeedDocumentService,
    FeedExportService,
    FeedImportService,
    FeedListService,
    FeedReportService,
    FeedService,
    HealthService,
    HintService,
    HubSeries,
    ListWatchService,
    LiveService,
    MetricsService,
    OpenFeederService,
    OutputReportService,
    PlanService,
    PlaygroundService,
    PublicService,
    PublishingService,
    PushCallbackService,
    PushHubReportService,
    ReaderService,
    RedeliveryService,
    RetrievalService,
    SearchService,
    SelectedFeedService,
    SelectedSubscriptionService,
    Services,
    SessionService,
    SubscriptionService,
    SuperfeedrService,
    TokenService,
    TrackTopics,
    UndeliveredService,
    WebSubService,
)
from hub.services.backup_directory import BackupDirectory
from hub.services.database_jobs import DatabaseJobs
from hub.services.disk_space import DiskSpace
from hub.services.hub_conditions import ConditionEvents, HubConditions
from hub.services.openfeeder_documents import OpenFeederOptions
from hub.services.plan_targets import (
    DeliveryTargets,
    FeedTargets,
    SubscriptionTargets,
)
from hub.services.reader_pages import AboutPage, Endpoints
from hub.services.topic_addresses import AddressCheck
from hub.settings import Settings, describe_settings
from hub.sites.feed_finder import FeedFinder
from hub.web.admin.page_streams import PageStreams
from hub.web.application import create_application
from hub.web.rate_limits import RateLimits, RequestLimits
from hub.web.server.http_server import HttpServer, create_server
from hub.websub.callback_challenge import CallbackChallenges
from hub.websub.intent_verification import IntentVerification
from hub.websub.ping_queue import PingQueue
from hub.websub.playground_network import PlaygroundNetwork
from hub.websub.playground_runs import PlaygroundRuns
from hub.websub.publisher_validation import PublisherValidation
from hub.websub.topic_admission import NamedHubs, OpenHub, TopicAdmission
from hub.websub.verification_loop import VerificationLoop
from protocols.http import user_agent
from protocols.openfeeder.write.content_queries import AuthorDisplay
from protocols.scp.collection import Encoding
from protocols.scp.read.unpacking import ChecksumRule
from storage.contract import Storage
from storage.errors import StorageError
from storage.records import AccessEnded, ControlEvent, DecisionsMissed, PlanKind

if TYPE_CHECKING:
    from hub.runtime.telemetry import Traces


class TracesUnavailable(Exception):
    """Traces are on, but cannot be made; the message says what to change."""


ROBOTS_LIMITS: Final = ResponseLimits(body_bytes=2 * MEBIBYTE)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltHub:
    """A hub whose parts are made but do not run yet: `hub.main` starts and stops it."""

    server: HttpServer
    services: Services
    live: LiveStream
    pages: PageStreams
    background: dict[str, BackgroundTask]
    """Tasks by name; each runs until it is cancelled."""


async def build_hub(
    settings: Settings,
    storage: Storage,
    token: str,
    public_url: str,
    stack: AsyncExitStack,
    *,
    clock: Clock | None = None,
    random: Random | None = None,
    jitter: Callable[[], float] = draw_jitter,
    network: Network | None = None,
    parser: Parser | None = None,
    lookup: Lookup | None = None,
    metrics: Metrics | None = None,
    poller: Poller | None = None,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    identity_key: str = "",
    membership: NodeMembership | None = None,
    traces: Traces | None = None,
) -> BuiltHub:
    """Make all parts; what must be closed goes on the stack.

    ``token`` is the administrator's, ``identity_key`` that of `hub.hub_address`. The
    others behind the stack replace the world around a hub, in simulations and tests.
    ``jitter`` is that of polls, from -1 to 1. Without a ``parser`` worker processes are
    started, without a ``poller`` there is the one that polls. ``sleep``: until a moment
    of the ``clock`` that is to be published.
    """
    clock = clock or SystemClock()
    random = random or SystemRandom()
    metrics = metrics or Metrics()
    membership = membership or NodeMembership(storage)
    events = EventLog(metrics)
    hub_url = f"{public_url}/hub"
    if network is None:
        network = await stack.enter_async_context(_network(settings))
    playground_runs = PlaygroundRuns(clock, public_url)
    network = watched = PlaygroundNetwork(network, playground_runs, clock, public_url)

    if traces is None:
        traces = _traces(settings, clock, (await storage.log.end()).epoch)
    if traces is not None:
        stack.push_async_callback(traces.close)

    # Fetching: what sends requests to publishers, and the poller that decides when.
    if parser is None:
        parser = await stack.enter_async_context(WorkerParser())
    publisher_identity = identity(settings)
    blocked_hosts = HostSet(settings.blocked_hosts)
    used_hubs = UsedHubs(settings.takes_pushes, HostSet(settings.unused_hubs))
    publishers = HostLimiter(clock, partial(network.is_exempt, purpose=Purpose.TOPIC))
    fetcher_of = partial(
        Fetcher, network, clock, blocked=blocked_hosts, limiter=publishers
    )
    fetcher: FeedFetcher = fetcher_of(ResponseLimits())
    if settings.robots == "on":
        robots_files = fetcher_of(ROBOTS_LIMITS)
        fetcher = RobotsFetcher(fetcher, robots_files, publishers, clock)
    feed_fetcher = PrefetchedResponses(fetcher)
    look_fetcher = RateLimitedFetcher(feed_fetcher, publishers, RequestKind.LOOK)
    list_fetcher = RateLimitedFetcher(fetcher, publishers, RequestKind.LOOK)
    finder = FeedFinder(look_fetcher, parser, clock, publisher_identity.of_hub)
    rules = settings.polling_rules
    if settings.takes_pushes:
        rules = replace(rules, push_url=public_url)
    poller = poller or Poller(
        storage,
        feed_fetcher,
        parser,
        publishers,
        clock,
        rules,
        concurrency=settings.poll_concurrency,
        site_bounds=settings.site_bounds,
        identity=publisher_identity,
        hub_url=hub_url,
        jitter=jitter,
        metrics=metrics,
        sanitizer=await _sanitizer(settings, stack),
        tracker=await _tracker(storage, metrics, stack),
        detector=await asyncio.to_thread(load_detector),
        budget=Budget(polls_per_second=settings.poll_budget),
        scp_checksum=ChecksumRule(settings.scp_checksum),
        is_pushed=feed_fetcher.is_pushed,
        is_trusted=membership.is_trusted,
        events=events,
        traces=traces,
    )
    clock_watch = ClockWatch(storage, clock, poller.wake)
    await clock_watch.begin()

    # What is due is claimed before it is begun: there may be other nodes.
    claims = WorkClaims(
        storage.claims, WorkLeases(clock, random, membership.is_trusted)
    )

    # Delivery to callbacks, and to live connections.
    counter = NotificationCounter()
    callbacks = HostLimiter(clock, partial(network.is_exempt, purpose=Purpose.CALLBACK))
    asked_retries = AskedRetries()
    dispatcher = Dispatcher(
        storage,
        network,
        clock,
        hub_url,
        DeliveryLimits(requests=settings.delivery_concurrency),
        random,
        metrics=metrics,
        counter=counter,
        events=events,
        membership=membership,
        traces=traces,
        asked=asked_retries,
    )
    digests = Digests(
        storage,
        network,
        clock,
        hub_url,
        counter,
        claims,
        tells_unlisted=settings.tells_unlisted,
    )
    denials = Denials(storage, network, clock, callbacks, claims)
    redeliveries = Redeliveries(network, clock, hub_url, counter)
    live = LiveStream(
        storage.log,
        hub_url,
        await storage.log.end(),
        random=random,
        metrics=metrics,
        clock=clock,
        quotas=divide_connections(settings.stream_connections, settings.stream_share),
    )
    live_watch = LiveWatch(live, storage.feeds, storage.tokens)
    pages = PageStreams(metrics, storage.read_ahead)
    token_service = TokenService(storage.tokens, clock)
    stack.enter_context(
        storage.control.watch(partial(_end_access, token_service, live_watch, pages))
    )

    # Topics: feeds, track queries, and pages of this hub.
    local_topics = LocalTopics(public_url)
    tracks = TrackTopics(storage.tracking, clock, public_url)
    addresses = AddressCheck(
        topics=Guard(settings.topic_networks),
        callbacks=Guard(settings.callback_networks),
        lookup=lookup or _system_lookup(stack),
        blocked=blocked_hosts,
    )
    feeds = FeedService(
        storage,
        poller,
        addresses,
        clock,
        tracks,
        local_topics,
        finder,
        feed_fetcher,
    )

    # Lists of feeds elsewhere, which the hub keeps in step with.
    lists = FeedListService(list_fetcher, addresses, publisher_identity.of_hub)
    list_watches = ListWatchService(
        storage,
        lists,
        feeds,
        publishers,
        clock,
        every=settings.list_seconds,
        jitter=jitter,
    )

    # Subscribing: by the operator, by accounts, and by strangers at the open hub.
    hub_agent = user_agent(PRODUCT, url=hub_url, contact=settings.contact)
    challenges = CallbackChallenges(network, clock, hub_agent, callbacks)
    validation = PublisherValidation(storage, network, hub_agent, publishers)
    subscriptions = SubscriptionService(
        storage,
        feeds,
        addresses,
        clock,
        tracks,
        local_topics,
        validation,
        settings.overlap_of_secrets,
    )
    superfeedr = SuperfeedrService(
        storage,
        subscriptions,
        challenges,
        clock,
        public_url,
        wake_verifier=lambda: verifier.wake(),
    )
    policy = OpenHub(settings.open_hub)
    public = PublicService(storage, public_url)
    admission = TopicAdmission(
        storage,
        poller,
        feed_fetcher,
        NamedHubs(parser, hub_url),
        publishers,
        clock,
        policy,
        hub_agent,
        local_topics,
    )
    verification = IntentVerification(
        storage,
        admission,
        challenges,
        clock,
        validation,
        superfeedr,
        settings.overlap_of_secrets,
    )
    verifier = VerificationLoop(storage, verification, challenges, clock, claims)
    pings = PingQueue(poller, clock, traces)
    websub = WebSubService(
        storage,
        verifier.wake,
        pings,
        clock,
        policy=policy,
        public_url=public_url,
        shortest_lease=settings.min_lease,
    )

    # Other people's hubs, which push. If that is off, existing subscriptions are ended.
    pushed_content = PushedContent(poller, feed_fetcher.provide_pushed, clock)
    received_pushes = ReceivedPushes(
        storage, pushed_content, pings, clock, traces=traces
    )
    subscriber = PushSubscriber(
        storage,
        HubRequests(
            network,
            clock,
            public_url,
            publisher_identity.of_hub,
            blocked_hosts,
            publishers,
        ),
        HubLimiter(partial(network.is_exempt, purpose=Purpose.HUB)),
        PollResumer(storage, poller.explain, poller.wake),
        clock,
        random,
        claims,
        used_hubs,
    )

    # Publishing: collections for crawlers, pages for language models.
    has_collections = settings.scp == "on"
    store = CollectionStore(settings.local_path.parent / COLLECTIONS_FOLDER)
    if has_collections:
        await asyncio.to_thread(store.open)
    builder = CollectionBuilder(
        storage,
        PageUpdater(storage.pages, clock, public_url, settings.scp_language),
        store,
        clock,
        BuildOptions(
            delta_seconds=settings.scp_delta_seconds,
            snapshot_seconds=settings.scp_snapshot_seconds,
            encoding=Encoding(settings.scp_compression),
            language=settings.scp_language,
        ),
        metrics,
        sleep,
    )
    publisher = CollectionPublisher(builder, clock, storage.log, is_on=has_collections)
    analytics = Analytics(create_sink(settings, network, urlsplit(public_url).netloc))

    # What people and programs may ask of it, and the server that they ask.
    retrieval = RetrievalService(
        storage,
        feeds,
        tracks,
        local_topics,
        hub_url,
        tells_unlisted=settings.tells_unlisted,
    )
    database_jobs = DatabaseJobs(storage, clock, metrics, _backup_directory(settings))
    search = SearchService(
        storage,
        public_url,
        days=settings.search_days,
        tells_unlisted=settings.tells_unlisted,
    )
    disk = DiskSpace(
        storage,
        clock,
        settings.local_path.parent,
        store.directory,
        settings.log_retention_bytes if settings.byte_limits else 0,
        holds_database=not settings.is_on_server,
    )
    conditions = HubConditions(
        storage,
        clock,
        disk,
        (
            lambda: clock_watch.warning,
            database_jobs.warning,
            membership.warning,
        ),
        lambda: poller.under_way,
        ConditionEvents(storage.events, clock).tell,
    )
    undelivered = UndeliveredService(
        storage.deliveries, storage.subscriptions, clock, asked_retries
    )
    plans = PlanService(
        storage.plans,
        storage.log,
        storage.subscription_selections,
        {
            PlanKind.FEEDS: FeedTargets(storage.feed_selections, feeds),
            PlanKind.SUBSCRIPTIONS: SubscriptionTargets(
                storage.subscription_selections, subscriptions, undelivered
            ),
            PlanKind.DELIVERIES: DeliveryTargets(storage.deliveries, undelivered),
        },
        clock,
    )
    feed_imports = FeedImportService(feeds, clock)
    collections = CollectionService(
        builder, store, clock, public_url, publisher, is_on=has_collections
    )
    openfeeder_options = _openfeeder_options(settings)
    output_readers = OutputReaders(clock)
    audit = AuditTrail(storage, clock)
    playground = PlaygroundService(
        playground_runs, watched, callbacks, feeds, storage, clock
    )
    with suppress(StorageError):  # tried again in the background
        await playground.load()
    metrics_service = MetricsService(
        storage, metrics, clock, disk, lambda: poller.under_way
    )
    delivery_reports = DeliveryReportService(storage, hub_url, metrics, clock)
    series = HubSeries(storage, metrics, metrics_service.waiting, disk, clock)
    services = Services(
        clock=clock,
        audit=audit,
        feeds=feeds,
        feed_reports=FeedReportService(storage, poller, audit, clock, metrics),
        selected_feeds=SelectedFeedService(storage, feeds, clock),
        committed_entries=CommittedEntryService(storage, metrics, series),
        entry_reports=EntryReportService(storage),
        feed_imports=feed_imports,
        feed_exports=FeedExportService(storage.feed_selections, public_url),
        feed_documents=FeedDocumentService(
            storage, look_fetcher, parser, clock, publisher_identity
        ),
        lists=lists,
        list_watches=list_watches,
        subscriptions=subscriptions,
        selected_subscriptions=SelectedSubscriptionService(storage, tracks),
        account_reports=AccountReportService(
            storage.subscription_selections,
            storage.tokens,
            counter,
            live.registry.held,
            live.registry.anonymous,
        ),
        event_subscriptions=EventSubscriptionService(
            storage, addresses, clock, local_topics, settings.overlap_of_secrets
        ),
        delivery_lists=DeliveryListService(storage, delivery_reports),
        delivery_reports=delivery_reports,
        trials=CallbackTrialService(
            storage,
            network,
            clock,
            subscriptions,
            feeds,
            addresses,
            callbacks,
            hub_url,
        ),
        undelivered=undelivered,
        plans=plans,
        superfeedr=superfeedr,
        websub=websub,
        playground=playground,
        redeliveries=RedeliveryService(storage, retrieval, redeliveries, public_url),
        connections=ConnectionService(live.registry),
        live=LiveService(
            storage.feeds,
            live,
            tracks,
            is_open=settings.open_stream == "on",
            local_topics=local_topics,
        ),
        retrieval=retrieval,
        search=search,
        push_hub_reports=PushHubReportService(storage.pushes, used_hubs),
        upstream=PushCallbackService(
            storage,
            received_pushes,
            clock,
            subscriber.wake,
            is_on=settings.takes_pushes,
            metrics=metrics,
        ),
        hints=HintService(storage, websub),
        publishing=PublishingService(storage.feeds, pushed_content, clock),
        public=public,
        collections=collections,
        openfeeder=OpenFeederService(storage, clock, public_url, openfeeder_options),
        outputs=OutputReportService(
            storage, public, collections, openfeeder_options, output_readers, clock
        ),
        output_readers=output_readers,
        analytics=analytics,
        settings=tuple(describe_settings(settings)),
        tokens=token_service,
        sessions=SessionService(storage.sessions, clock, token, public_url),
        conditions=conditions,
        operations=HealthService(
            storage, clock, conditions, disk, search, lambda: poller.under_way, metrics
        ),
        database_jobs=database_jobs,
        metrics=metrics_service,
        series=series,
        readers=ReaderService(
            storage,
            public,
            search,
            clock,
            Endpoints(
                url=public_url,
                is_hub_open=policy is not OpenHub.OFF,
                is_stream_open=settings.open_stream == "on",
                has_collections=has_collections,
            ),
            AboutPage(
                url=public_url,
                contact=settings.contact,
                heeds_robots=settings.robots == "on",
            ),
        ),
    )
    application = create_application(
        services,
        token,
        RateLimits(_request_limits(settings), clock, metrics),
        settings.lengths,
        public_url,
        identity_key,
        meter=metrics.requests,
        streams=pages,
        logs_requests=settings.access_log == "on",
        origins=settings.api_origins,
        traces=traces,
    )
    watched.attach(application)
    housekeeping = Housekeeping(
        storage,
        clock,
        settings.retention,
        settings.byte_limits,
        lambda: live.registry.feeds,
        Maintenance(storage, clock, _word_list(settings), claims).round,
        settings.audit_retention,
    )
    background: dict[str, BackgroundTask] = {
        "membership": membership.run,
        "poller": poller.run,
        "watched lists": list_watches.run,
        "dispatcher": dispatcher.run,
        "denials": denials.run,
        "digests": digests.run,
        "event publisher": EventPublisher(storage.events, clock).run,
        "redeliveries": redeliveries.run,
        "live stream": live.run,
        "live watch": live_watch.run,
        "watched pages": pages.run,
        "verifier": verifier.run,
        "pings": pings.run,
        "push subscriber": subscriber.run,
        "publisher": publisher.run,
        "asked builds": publisher.build_when_asked,
        "analytics": analytics.run,
        "search index": SearchIndex(storage, clock, days=settings.search_days).run,
        "clock": clock_watch.run,
        "database jobs": database_jobs.run,
        "plans": plans.run,
        "imports": feed_imports.run,
        "playground": playground.run,
        "housekeeping": housekeeping.run,
        "audit trail": audit.run,
        "event log": events.run,
        "conditions": conditions.run,
        "series": series.run,
    }
    if settings.takes_pushes:
        background["received pushes"] = received_pushes.run
    return BuiltHub(
        server=create_server(application, settings.keep_alive),
        services=services,
        live=live,
        pages=pages,
        background=background,
    )


def identity(settings: Settings) -> FetcherIdentity:
    """What publishers are told about the hub that fetches their feeds."""
    return FetcherIdentity(
        product=PRODUCT,
        url=f"{settings.public_url}/about" if settings.public_url else "",
        contact=settings.contact,
    )


def _network(settings: Settings) -> HttpNetwork:
    """The network of all requests, under the address guard of the settings."""
    return HttpNetwork(
        allow_topics=settings.topic_networks,
        allow_callbacks=settings.callback_networks,
        allow_hubs=settings.hub_networks,
    )


def _traces(settings: Settings, clock: Clock, epoch: str) -> Traces | None:
    """The traces that the settings ask for. Raises `TracesUnavailable`."""
    if settings.traces == "off":
        return None
    try:
        from hub.runtime.telemetry import Traces, TracesUnusable, create_exporter
    except ImportError as error:
        raise TracesUnavailable(
            f"FANFARE_TRACES={settings.traces} needs the extra opentelemetry:"
            f" install fanfare-hub[opentelemetry] ({error})"
        ) from error
    try:
        return Traces(create_exporter(settings.traces, os.environ), clock, epoch)
    except (TracesUnusable, ValueError) as error:
        raise TracesUnavailable(f"FANFARE_TRACES={settings.traces}: {error}") from error


async def _sanitizer(
    settings: Settings, stack: AsyncExitStack
) -> WorkerSanitizer | None:
    if settings.sanitize == "off":
        return None
    return await stack.enter_async_context(WorkerSanitizer())


async def _tracker(
    storage: Storage, metrics: Metrics, stack: AsyncExitStack
) -> Tracker:
    """A tracker that hears of new queries before it reads those there are."""
    tracker = Tracker(storage.tracking, metrics)
    stack.enter_context(storage.control.watch(tracker.note))
    await tracker.load()
    return tracker


def _system_lookup(stack: AsyncExitStack) -> SystemLookup:
    lookup = SystemLookup()
    stack.callback(lookup.close)
    return lookup


def _openfeeder_options(settings: Settings) -> OpenFeederOptions:
    return OpenFeederOptions(
        is_on=settings.openfeeder == "on",
        has_search=settings.search_days > 0,
        name=settings.openfeeder_name,
        language=settings.scp_language,
        contact=settings.contact,
        tombstone_seconds=settings.openfeeder_tombstone_seconds,
        gatekeeper=Gatekeeper(
            excluded_paths=settings.openfeeder_excluded_paths,
            excluded_types=frozenset(settings.openfeeder_excluded_types),
            authors=AuthorDisplay(settings.openfeeder_authors),
            key=settings.openfeeder_key,
        ),
    )


def _request_limits(settings: Settings) -> RequestLimits:
    return RequestLimits(
        of_token=_rate(settings.rate_limit_token),
        of_address=_rate(settings.rate_limit_address),
        trusted_proxies=settings.trusted_proxies,
    )


def _rate(requests_a_minute: int) -> Rate | None:
    return per_minute(requests_a_minute) if requests_a_minute else None


def _backup_directory(settings: Settings) -> BackupDirectory | None:
    if not settings.backup_dir:
        return None
    return BackupDirectory(
        Path(settings.backup_dir),
        settings.local_path,
        every=settings.backup_seconds,
        kept=settings.backups_kept,
    )


def _word_list(settings: Settings) -> WordList | None:
    if not settings.porn_words:
        return None
    return WordList(Path(settings.porn_words).read_text("utf-8", errors="replace"))


def _end_access(
    tokens: TokenService,
    live_watch: LiveWatch,
    pages: PageStreams,
    event: ControlEvent,
) -> None:
    """Heed that access has ended, whichever node decided so."""
    if isinstance(event, AccessEnded | DecisionsMissed):
        tokens.forget(event.tokens if isinstance(event, AccessEnded) else None)
        live_watch.wake()
        pages.wake()
