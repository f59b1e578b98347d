"""Putting together what hubs of others are asked, and what they tell."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from hub.ground import identity
from hub.limits.hub_limiter import HubLimiter
from hub.open_hub import Surroundings
from hub.polling.bringing import Bringing
from hub.polling.opt_outs import OptOuts
from hub.runtime.background import BackgroundTask
from hub.services.upstream import UpstreamService
from hub.settings import Settings
from hub.upstream.deliveries import Deliveries
from hub.upstream.polls import Polls
from hub.upstream.requests import HubRequests
from hub.upstream.subscriber import Subscriber
from hub.websub.pings import Pings


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltUpstream:
    service: UpstreamService
    background: dict[str, BackgroundTask]


def build_upstream(
    around: Surroundings,
    bringing: Bringing,
    pings: Pings,
    settings: Settings,
    random: Random,
) -> BuiltUpstream:
    """Switched off, it asks nobody, leaves those it has asked before, and all
    callbacks are gone. ``random`` spreads requests."""
    is_on = settings.takes_pushes
    deliveries = Deliveries(around.storage, bringing, pings, around.clock)
    subscriber = Subscriber(
        around.storage,
        HubRequests(
            around.network,
            around.clock,
            around.public_url,
            identity(settings).of_hub,
            OptOuts(settings.blocked_hosts),
        ),
        HubLimiter(around.network),
        Polls(around.storage, around.poller.explain, around.poller.wake),
        around.clock,
        random,
        is_on=is_on,
    )
    service = UpstreamService(
        around.storage, deliveries, around.clock, subscriber.wake, is_on=is_on
    )
    parts: dict[str, BackgroundTask] = {"subscriber": subscriber.run}
    if is_on:
        parts["upstream deliveries"] = deliveries.run
    return BuiltUpstream(service=service, background=parts)
