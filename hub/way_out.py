"""Putting together what brings news out: webhooks, digests, denials, live streams."""

from __future__ import annotations

from dataclasses import dataclass

import hub
from hub.delivery.callback_pace import CallbackPace
from hub.delivery.credits import Credits
from hub.delivery.denials import Denials
from hub.delivery.digests import Digests
from hub.delivery.dispatcher import DeliveryLimits, Dispatcher
from hub.delivery.redelivery import Redeliveries
from hub.ground import Ground
from hub.live.shares import divide
from hub.live.stream import LiveStream
from hub.live.watch import LiveWatch
from hub.runtime.background import BackgroundTask


@dataclass(frozen=True, slots=True, kw_only=True)
class WayOut:
    """``pace`` is that of callbacks that the open hub asks, or tells something."""

    pace: CallbackPace
    redeliveries: Redeliveries
    live: LiveStream
    watch: LiveWatch
    background: dict[str, BackgroundTask]


async def build_way_out(ground: Ground) -> WayOut:
    credits = Credits()
    pace = CallbackPace(ground.network, ground.clock)
    redeliveries = Redeliveries(ground.network, ground.clock, ground.hub_url, credits)
    live = await _live_stream(ground)
    watch = LiveWatch(live, ground.storage.feeds, ground.storage.tokens)
    return WayOut(
        pace=pace,
        redeliveries=redeliveries,
        live=live,
        watch=watch,
        background={
            "dispatcher": _dispatcher(ground, credits).run,
            "denials": Denials(ground.storage, ground.network, ground.clock, pace).run,
            "digests": _digests(ground, credits).run,
            "replays": redeliveries.run,
            "live stream": live.run,
            "live watch": watch.run,
        },
    )


def _dispatcher(ground: Ground, credits: Credits) -> Dispatcher:
    return Dispatcher(
        ground.storage,
        ground.network,
        ground.clock,
        ground.hub_url,
        DeliveryLimits(requests=ground.settings.delivery_concurrency),
        ground.seams.random,
        metrics=ground.metrics,
        credits=credits,
    )


def _digests(ground: Ground, credits: Credits) -> Digests:
    return Digests(
        ground.storage,
        ground.network,
        ground.clock,
        ground.hub_url,
        f"Fanfare/{hub.__version__} (+{ground.hub_url})",
        credits,
        tells_unlisted=ground.settings.tells_unlisted,
    )


async def _live_stream(ground: Ground) -> LiveStream:
    return LiveStream(
        ground.storage.log,
        ground.hub_url,
        await ground.storage.log.head(),
        random=ground.seams.random,
        metrics=ground.metrics,
        clock=ground.clock,
        shares=divide(ground.settings.stream_connections, ground.settings.stream_share),
    )
