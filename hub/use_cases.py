"""Putting together the use cases, and what of them runs in the background."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from urllib.parse import urlsplit

from hub.ground import Ground, identity
from hub.http.guard import Guard
from hub.http.resolver import SystemLookup
from hub.open_hub import (
    BuiltOpenHub,
    Surroundings,
    build_asking,
    build_open_hub,
)
from hub.openfeeder.analytics import Analytics, create_sink
from hub.own_topics import OwnTopics
from hub.polling.bringing import Bringing
from hub.polling.opt_outs import OptOuts
from hub.publishing import build_openfeeder, build_publishing
from hub.runtime.background import BackgroundTask
from hub.runtime.clock_watch import ClockWatch
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
from hub.upstream.assembly import build_upstream
from hub.way_in import WayIn
from hub.way_out import WayOut
from hub.websub.topics import OpenHub


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltUseCases:
    services: Services
    background: dict[str, BackgroundTask]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Topics:
    """What may be subscribed to: feeds, pages of this hub, queries."""

    addresses: AddressCheck
    own: OwnTopics
    tracks: TrackTopics
    feeds: FeedService


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subscribing:
    """The doors at which subscriptions are asked for."""

    subscriptions: SubscriptionService
    superfeedr: SuperfeedrService
    open_hub: BuiltOpenHub


async def build_use_cases(
    ground: Ground,
    way_in: WayIn,
    way_out: WayOut,
    clock_watch: ClockWatch,
    stack: AsyncExitStack,
) -> BuiltUseCases:
    """What must be closed goes on the stack."""
    settings, storage, clock = ground.settings, ground.storage, ground.clock
    topics = _topics(ground, way_in, way_out, stack)
    subscribing = _subscribing(ground, way_in, way_out, topics)
    open_hub = subscribing.open_hub
    publishing = await build_publishing(
        settings, storage, clock, ground.metrics, ground.public_url
    )
    bringing = Bringing(way_in.poller, way_in.fetcher.bring, clock)
    upstream = build_upstream(
        _surroundings(ground, way_in, way_out),
        bringing,
        open_hub.pings,
        settings,
        ground.seams.random,
    )
    sink = create_sink(settings, ground.network, urlsplit(ground.public_url).netloc)
    analytics = Analytics(sink)
    tells_unlisted = settings.tells_unlisted
    retrieval = RetrievalService(
        storage,
        topics.feeds,
        topics.tracks,
        ground.hub_url,
        tells_unlisted=tells_unlisted,
    )
    services = Services(
        feeds=topics.feeds,
        feed_reports=FeedReportService(storage, way_in.poller, clock),
        subscriptions=subscribing.subscriptions,
        deliveries=DeliveryService(storage, clock),
        operations=OperationsService(
            storage,
            clock,
            settings.database_path.parent,
            lambda: clock_watch.warning,
            lambda: way_in.poller.under_way,
        ),
        lists=ListService(way_in.lists, topics.addresses, identity(settings).of_hub),
        tokens=TokenService(storage.tokens, clock, way_out.watch.wake),
        tracks=topics.tracks,
        metrics=MetricsService(
            storage, ground.metrics, clock, lambda: way_in.poller.under_way
        ),
        front=_front(ground),
        websub=open_hub.service,
        live=_live(ground, way_out, topics),
        retrieval=retrieval,
        search=SearchService(storage, ground.public_url, tells_unlisted=tells_unlisted),
        replays=ReplayService(
            storage, retrieval, way_out.redeliveries, ground.public_url
        ),
        superfeedr=subscribing.superfeedr,
        public=PublicService(storage, ground.public_url),
        publishing=PublishingService(storage.feeds, bringing, clock),
        collections=publishing.service,
        openfeeder=build_openfeeder(settings, storage, clock, ground.public_url),
        upstream=upstream.service,
        hints=HintService(storage, open_hub.service),
        analytics=analytics,
    )
    return BuiltUseCases(
        services=services,
        background={
            **open_hub.background,
            **upstream.background,
            "publisher": publishing.run,
            "analytics": analytics.run,
        },
    )


def _topics(
    ground: Ground, way_in: WayIn, way_out: WayOut, stack: AsyncExitStack
) -> _Topics:
    addresses = _address_check(ground, stack)
    tracks = TrackTopics(ground.storage.tracking, ground.clock, ground.public_url)
    own = OwnTopics(ground.public_url)
    feeds = FeedService(
        ground.storage,
        way_in.poller,
        addresses,
        ground.clock,
        tracks,
        way_out.watch.wake,
        own,
        Discovering(scout=way_in.scout, answers=way_in.fetcher),
    )
    return _Topics(addresses=addresses, own=own, tracks=tracks, feeds=feeds)


def _address_check(ground: Ground, stack: AsyncExitStack) -> AddressCheck:
    lookup = ground.seams.lookup or _system_lookup(stack)
    settings = ground.settings
    return AddressCheck(
        topics=Guard(settings.allow_networks + settings.allow_topic_networks),
        callbacks=Guard(settings.allow_networks + settings.allow_callback_networks),
        lookup=lookup,
        opt_outs=OptOuts(settings.blocked_hosts),
    )


def _system_lookup(stack: AsyncExitStack) -> SystemLookup:
    lookup = SystemLookup()
    stack.callback(lookup.close)
    return lookup


def _subscribing(
    ground: Ground, way_in: WayIn, way_out: WayOut, topics: _Topics
) -> _Subscribing:
    storage, clock, settings = ground.storage, ground.clock, ground.settings
    around = _surroundings(ground, way_in, way_out)
    asking = build_asking(around)
    subscriptions = SubscriptionService(
        storage,
        topics.feeds,
        topics.addresses,
        clock,
        topics.tracks,
        topics.own,
        asking.validation,
        settings.overlap_of_secrets,
    )
    of_accounts = AccountSubscriptions(storage, subscriptions, clock, ground.public_url)
    open_hub = build_open_hub(
        around,
        asking,
        of_accounts,
        OpenHub(settings.open_hub),
        settings.min_lease,
        settings.overlap_of_secrets,
    )
    superfeedr = SuperfeedrService(
        storage, of_accounts, asking.questions, clock, open_hub.wake_verifier
    )
    return _Subscribing(
        subscriptions=subscriptions, superfeedr=superfeedr, open_hub=open_hub
    )


def _surroundings(ground: Ground, way_in: WayIn, way_out: WayOut) -> Surroundings:
    return Surroundings(
        storage=ground.storage,
        network=ground.network,
        fetcher=way_in.fetcher,
        parser=way_in.parser,
        poller=way_in.poller,
        clock=ground.clock,
        pace=way_out.pace,
        public_url=ground.public_url,
        contact=ground.settings.contact,
    )


def _front(ground: Ground) -> FrontPageService:
    return FrontPageService(
        ground.storage,
        ground.clock,
        ground.public_url,
        ground.settings.contact,
        heeds_robots=ground.settings.robots == "on",
    )


def _live(ground: Ground, way_out: WayOut, topics: _Topics) -> LiveService:
    return LiveService(
        ground.storage.feeds,
        way_out.live,
        topics.tracks,
        is_open=ground.settings.open_stream == "on",
        own_topics=topics.own,
    )
