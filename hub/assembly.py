"""Putting the parts of a hub together, as its settings have it.

`hub.way_in` builds what brings documents in, `hub.way_out` what brings news out, and
`hub.use_cases` what people and programs may ask of both.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from hub.core.standing import WordList
from hub.ground import Ground, Seams, create_network
from hub.http import Network
from hub.jobs import Housekeeping
from hub.limits.token_bucket import Rate, per_minute
from hub.live.stream import LiveStream
from hub.maintenance import Maintenance
from hub.runtime.background import BackgroundTask
from hub.runtime.clock_watch import ClockWatch
from hub.runtime.metrics import Metrics
from hub.search_index import SearchIndex
from hub.services import OperationsService, Services
from hub.settings import Settings
from hub.use_cases import build_use_cases
from hub.way_in import build_way_in
from hub.way_out import build_way_out
from hub.web.application import create_application
from hub.web.rate_limits import RateLimits, RequestLimits
from hub.web.server.http_server import Server, create_server
from storage.interface import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltHub:
    """A built hub: its parts that run in the background, and its server."""

    server: Server
    services: Services
    operations: OperationsService
    live: LiveStream
    background: dict[str, BackgroundTask]


async def build_hub(
    settings: Settings,
    storage: Storage,
    token: str,
    public_url: str,
    stack: AsyncExitStack,
    seams: Seams | None = None,
) -> BuiltHub:
    """Put the parts together; what must be closed goes on the stack."""
    seams = seams or Seams()
    ground = Ground(
        settings=settings,
        storage=storage,
        clock=seams.clock,
        metrics=Metrics(),
        network=seams.network or await _real_network(settings, stack),
        public_url=public_url,
        seams=seams,
    )
    way_in = await build_way_in(ground, stack)
    way_out = await build_way_out(ground)
    clock_watch = ClockWatch(storage, seams.clock, way_in.poller.wake)
    await clock_watch.begin()
    built = await build_use_cases(ground, way_in, way_out, clock_watch, stack)
    return BuiltHub(
        server=_server(ground, built.services, token),
        services=built.services,
        operations=built.services.operations,
        live=way_out.live,
        background={
            "poller": way_in.poller.run,
            **way_out.background,
            **built.background,
            "search index": SearchIndex(storage).run,
            "clock": clock_watch.run,
            "housekeeping": _housekeeping(ground, way_out.live).run,
        },
    )


async def _real_network(settings: Settings, stack: AsyncExitStack) -> Network:
    return await stack.enter_async_context(create_network(settings))


def _server(ground: Ground, services: Services, token: str) -> Server:
    limits = RateLimits(_request_limits(ground.settings), ground.clock, ground.metrics)
    return create_server(
        create_application(
            services, token, limits, ground.settings.lengths, ground.public_url
        ),
        ground.settings.keep_alive,
    )


def _request_limits(settings: Settings) -> RequestLimits:
    return RequestLimits(
        of_token=_rate(settings.rate_limit_token),
        of_address=_rate(settings.rate_limit_address),
        trusted_proxies=settings.trusted_proxies,
    )


def _rate(requests_a_minute: int) -> Rate | None:
    return per_minute(requests_a_minute) if requests_a_minute else None


def _housekeeping(ground: Ground, live: LiveStream) -> Housekeeping:
    words = _word_list(ground.settings)
    return Housekeeping(
        ground.storage,
        ground.clock,
        ground.settings.retention,
        lambda: live.audience.feeds,
        Maintenance(ground.storage, ground.clock, words).round,
    )


def _word_list(settings: Settings) -> WordList | None:
    if not settings.porn_words:
        return None
    return WordList(Path(settings.porn_words).read_text("utf-8", errors="replace"))
