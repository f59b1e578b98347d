"""Putting the parts of a hub together, as its settings have it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import hub
from hub.clock import Clock, SystemClock
from hub.config import Settings
from hub.core.budget import Budget
from hub.core.rate_limit import Rate, per_minute
from hub.core.standing import WordList
from hub.delivery.callback_pace import CallbackPace
from hub.delivery.credits import Credits
from hub.delivery.denials import Denials
from hub.delivery.digests import Digests
from hub.delivery.dispatcher import DeliveryLimits, Dispatcher
from hub.delivery.redelivery import Redeliveries
from hub.jobs import Housekeeping
from hub.live.stream import LiveStream
from hub.live.watch import LiveWatch
from hub.maintenance import Maintenance
from hub.metrics import Metrics
from hub.net import HttpNetwork, Limits, Network
from hub.net.guard import Guard
from hub.net.messages import MEBIBYTE
from hub.net.resolving import SystemLookup
from hub.open_hub import Surroundings, build_asking, build_open_hub
from hub.openfeeder.analytics import Analytics, create_sink
from hub.own_topics import OwnTopics
from hub.parsing import WorkerParser
from hub.parsing.sanitizing import WorkerSanitizer
from hub.polling.fetcher import FeedFetcher, Fetcher
from hub.polling.handed_over import HandedOver
from hub.polling.identity import Identity
from hub.polling.languages import load_detector
from hub.polling.opt_outs import OptOuts
from hub.polling.paced import PacedFetcher
from hub.polling.poller import Poller
from hub.polling.poller_options import PollerOptions
from hub.polling.robots import RespectfulFetcher
from hub.polling.scout import Scout
from hub.polling.tracker import Tracker
from hub.publishing import build_openfeeder, build_publishing
from hub.search_index import SearchIndex
from hub.server import Server, create_server
from hub.services import (
    DeliveryService,
    FeedReportService,
    FeedService,
    FrontPageService,
    HintService,
    ListService,
    LiveService,
    MetricsService,
    OperationsService,
    PublicService,
    PublishingService,
    ReplayService,
    RetrievalService,
    SearchService,
    Services,
    SubscriptionService,
    SuperfeedrService,
    TokenService,
    TrackTopics,
)
from hub.services.account_subscriptions import AccountSubscriptions
from hub.services.addresses import AddressCheck
from hub.services.discovering import Discovering
from hub.web.application import create_application
from hub.web.rate_limits import RateLimits, RequestLimits
from hub.websub.topics import OpenHub
from protocols.outlines import MOST_BYTES
from protocols.scp.reading.checksums import ChecksumRule
from storage.interface import Storage

Part = Callable[[], Coroutine[Any, Any, None]]
"""Starts something that runs until it is cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltHub:
    """A built hub: its parts that run in the background, and its server."""

    server: Server
    operations: OperationsService
    live: LiveStream
    background: dict[str, Part]


def create_network(settings: Settings) -> HttpNetwork:
    """The one way out, under the address guard as the settings have it."""
    return HttpNetwork(
        allow_topics=settings.allow_networks + settings.allow_topic_networks,
        allow_callbacks=settings.allow_networks + settings.allow_callback_networks,
    )


def identity(settings: Settings) -> Identity:
    """Who publishers are told is asking."""
    return Identity(
        product=f"Fanfare/{hub.__version__}",
        url=f"{settings.public_url}/about" if settings.public_url else "",
        contact=settings.contact,
    )


async def build_hub(
    settings: Settings,
    storage: Storage,
    token: str,
    public_url: str,
    stack: AsyncExitStack,
) -> BuiltHub:
    """Put the parts together; what must be closed goes on the stack."""
    clock = SystemClock()
    metrics = Metrics()
    network = await stack.enter_async_context(create_network(settings))
    parser = await stack.enter_async_context(WorkerParser())
    sanitizer = await _sanitizer(settings, stack)
    tracker = Tracker(storage.tracking, metrics)
    stack.enter_context(storage.tracking.watch(tracker.tell))
    await tracker.load()
    fetcher = HandedOver(_guest(settings, network, clock))
    poller = Poller(
        storage,
        fetcher,
        parser,
        network,
        clock,
        settings.polling_rules,
        PollerOptions(
            concurrency=settings.poll_concurrency,
            site_bounds=settings.site_bounds,
            identity=identity(settings),
            hub_url=f"{public_url}/hub",
            metrics=metrics,
            sanitizer=sanitizer,
            tracker=tracker,
            detector=await asyncio.to_thread(load_detector),
            budget=Budget(polls_per_second=settings.poll_budget),
            scp_checksum=ChecksumRule(settings.scp_checksum),
        ),
    )
    credits = Credits()
    dispatcher = Dispatcher(
        storage,
        network,
        clock,
        f"{public_url}/hub",
        DeliveryLimits(requests=settings.delivery_concurrency),
        metrics=metrics,
        credits=credits,
    )
    digests = Digests(
        storage,
        network,
        clock,
        f"{public_url}/hub",
        f"Fanfare/{hub.__version__} (+{public_url}/hub)",
        credits,
        tells_unlisted=settings.tells_unlisted,
    )
    operations = OperationsService(storage, clock, settings.database_path.parent)
    addresses = _address_check(settings, stack)
    live = LiveStream(
        storage.log,
        f"{public_url}/hub",
        await storage.log.head(),
        random=Random(),  # noqa: S311 - spreads reconnects
        metrics=metrics,
        most_connections=settings.stream_connections,
    )
    watch = LiveWatch(live, storage.feeds, storage.tokens)
    tracks = TrackTopics(storage.tracking, clock, public_url)
    own = OwnTopics(public_url)
    asking = identity(settings).of_hub
    paced = PacedFetcher(fetcher, network, clock)
    scout = Scout(paced, parser, clock, asking)
    lists = PacedFetcher(
        Fetcher(
            network,
            clock,
            Limits(body_bytes=MOST_BYTES),
            OptOuts(settings.blocked_hosts),
        ),
        network,
        clock,
    )
    feeds = FeedService(
        storage,
        poller,
        addresses,
        clock,
        tracks,
        watch.wake,
        own,
        Discovering(scout=scout, answers=fetcher),
    )
    pace = CallbackPace(network, clock)
    around = Surroundings(
        storage=storage,
        network=network,
        fetcher=fetcher,
        parser=parser,
        poller=poller,
        clock=clock,
        pace=pace,
        public_url=public_url,
        contact=settings.contact,
    )
    asked = build_asking(around)
    subscriptions = SubscriptionService(
        storage, feeds, addresses, clock, tracks, own, asked.validation
    )
    of_accounts = AccountSubscriptions(storage, subscriptions, clock, public_url)
    open_hub = build_open_hub(
        around,
        asked,
        of_accounts,
        OpenHub(settings.open_hub),
        settings.min_lease,
    )
    retrieval = RetrievalService(
        storage,
        feeds,
        tracks,
        f"{public_url}/hub",
        tells_unlisted=settings.tells_unlisted,
    )
    redeliveries = Redeliveries(network, clock, f"{public_url}/hub", credits)
    superfeedr = SuperfeedrService(
        storage, of_accounts, asked.questions, clock, open_hub.wake_verifier
    )
    publishing = await build_publishing(settings, storage, clock, metrics, public_url)
    analytics = Analytics(create_sink(settings, network, urlsplit(public_url).netloc))
    services = Services(
        feeds=feeds,
        feed_reports=FeedReportService(storage, poller, clock),
        subscriptions=subscriptions,
        deliveries=DeliveryService(storage, clock),
        operations=operations,
        lists=ListService(lists, addresses, asking),
        tokens=TokenService(storage.tokens, clock, watch.wake),
        tracks=tracks,
        metrics=MetricsService(storage, metrics, clock),
        front=FrontPageService(
            storage,
            clock,
            public_url,
            settings.contact,
            heeds_robots=settings.robots == "on",
        ),
        websub=open_hub.service,
        live=LiveService(
            storage.feeds,
            live,
            tracks,
            is_open=settings.open_stream == "on",
            own_topics=own,
        ),
        retrieval=retrieval,
        search=SearchService(
            storage, public_url, tells_unlisted=settings.tells_unlisted
        ),
        replays=ReplayService(storage, retrieval, redeliveries, public_url),
        superfeedr=superfeedr,
        public=PublicService(storage, public_url),
        publishing=PublishingService(storage.feeds, poller, fetcher.bring, clock),
        collections=publishing.service,
        openfeeder=build_openfeeder(settings, storage, clock, public_url),
        hints=HintService(storage, open_hub.service),
        analytics=analytics,
    )
    limits = RateLimits(_request_limits(settings), clock, metrics)
    return BuiltHub(
        server=create_server(
            create_application(services, token, limits, settings.lengths)
        ),
        operations=operations,
        live=live,
        background={
            "poller": poller.run,
            "dispatcher": dispatcher.run,
            "denials": Denials(storage, network, clock, pace).run,
            "digests": digests.run,
            **open_hub.background,
            "replays": redeliveries.run,
            "search index": SearchIndex(storage).run,
            "live stream": live.run,
            "live watch": watch.run,
            "publisher": publishing.run,
            "analytics": analytics.run,
            "housekeeping": Housekeeping(
                storage,
                clock,
                settings.retention,
                lambda: live.audience.feeds,
                Maintenance(storage, clock, _word_list(settings)).round,
            ).run,
        },
    )


async def _sanitizer(
    settings: Settings, stack: AsyncExitStack
) -> WorkerSanitizer | None:
    if settings.sanitize == "off":
        return None
    return await stack.enter_async_context(WorkerSanitizer())


def _word_list(settings: Settings) -> WordList | None:
    if not settings.porn_words:
        return None
    return WordList(Path(settings.porn_words).read_text("utf-8", errors="replace"))


def _request_limits(settings: Settings) -> RequestLimits:
    return RequestLimits(
        of_token=_rate(settings.rate_limit_token),
        of_address=_rate(settings.rate_limit_address),
        trusted_proxies=settings.trusted_proxies,
    )


def _guest(settings: Settings, network: Network, clock: Clock) -> FeedFetcher:
    """What fetches feeds, as politely as the settings have it."""
    opt_outs = OptOuts(settings.blocked_hosts)
    fetcher = Fetcher(network, clock, Limits(), opt_outs)
    if settings.robots == "off":
        return fetcher
    files = Fetcher(network, clock, Limits(body_bytes=2 * MEBIBYTE), opt_outs)
    return RespectfulFetcher(fetcher, files, network, clock)


def _rate(requests_a_minute: int) -> Rate | None:
    return per_minute(requests_a_minute) if requests_a_minute else None


def _address_check(settings: Settings, stack: AsyncExitStack) -> AddressCheck:
    lookup = SystemLookup()
    stack.callback(lookup.close)
    return AddressCheck(
        topics=Guard(settings.allow_networks + settings.allow_topic_networks),
        callbacks=Guard(settings.allow_networks + settings.allow_callback_networks),
        lookup=lookup,
        opt_outs=OptOuts(settings.blocked_hosts),
    )
