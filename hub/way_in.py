"""Putting together what brings documents in: fetchers, parser, poller, scout."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from hub.core.budget import Budget
from hub.core.cadence import PollingRules
from hub.ground import Ground, identity
from hub.http import Limits
from hub.http.messages import MEBIBYTE
from hub.parsing.parser import Parser, WorkerParser
from hub.parsing.sanitizing import WorkerSanitizer
from hub.polling.fetcher import FeedFetcher, Fetcher
from hub.polling.handed_over import HandedOver
from hub.polling.languages import load_detector
from hub.polling.opt_outs import OptOuts
from hub.polling.paced import PacedFetcher
from hub.polling.poller import Poller
from hub.polling.poller_options import PollerOptions
from hub.polling.robots import RespectfulFetcher
from hub.polling.scout import Scout
from hub.polling.tracker import Tracker
from protocols.outlines import MOST_BYTES
from protocols.scp.reading.checksums import ChecksumRule


@dataclass(frozen=True, slots=True, kw_only=True)
class WayIn:
    """``lists`` fetches what is longer than feeds; it and the scout ask for what is no
    feed yet, at the pace of their hosts."""

    fetcher: HandedOver
    parser: Parser
    poller: Poller
    scout: Scout
    lists: FeedFetcher


async def build_way_in(ground: Ground, stack: AsyncExitStack) -> WayIn:
    """What must be closed goes on the stack."""
    parser = ground.seams.parser or await _worker_parser(stack)
    fetcher = HandedOver(_guest(ground))
    asking = identity(ground.settings).of_hub
    paced = PacedFetcher(fetcher, ground.network, ground.clock)
    return WayIn(
        fetcher=fetcher,
        parser=parser,
        poller=Poller(
            ground.storage,
            fetcher,
            parser,
            ground.network,
            ground.clock,
            _rules(ground),
            await _poller_options(ground, stack, fetcher.is_in_hand),
        ),
        scout=Scout(paced, parser, ground.clock, asking),
        lists=_list_fetcher(ground),
    )


def _rules(ground: Ground) -> PollingRules:
    """Hubs of others push to where this one is reached."""
    rules = ground.settings.polling_rules
    if not ground.settings.takes_pushes:
        return rules
    return replace(rules, push_url=ground.public_url)


async def _worker_parser(stack: AsyncExitStack) -> Parser:
    return await stack.enter_async_context(WorkerParser())


async def _poller_options(
    ground: Ground, stack: AsyncExitStack, is_in_hand: Callable[[str], bool]
) -> PollerOptions:
    settings = ground.settings
    return PollerOptions(
        concurrency=settings.poll_concurrency,
        site_bounds=settings.site_bounds,
        identity=identity(settings),
        hub_url=ground.hub_url,
        jitter=ground.seams.jitter,
        metrics=ground.metrics,
        sanitizer=await _sanitizer(ground, stack),
        tracker=await _tracker(ground, stack),
        detector=await asyncio.to_thread(load_detector),
        budget=Budget(polls_per_second=settings.poll_budget),
        scp_checksum=ChecksumRule(settings.scp_checksum),
        is_in_hand=is_in_hand,
    )


async def _sanitizer(ground: Ground, stack: AsyncExitStack) -> WorkerSanitizer | None:
    if ground.settings.sanitize == "off":
        return None
    return await stack.enter_async_context(WorkerSanitizer())


async def _tracker(ground: Ground, stack: AsyncExitStack) -> Tracker:
    """It is told of queries from before it knows them."""
    tracker = Tracker(ground.storage.tracking, ground.metrics)
    stack.enter_context(ground.storage.tracking.watch(tracker.tell))
    await tracker.load()
    return tracker


def _guest(ground: Ground) -> FeedFetcher:
    """What fetches feeds, as politely as the settings have it."""
    fetcher = _fetcher(ground, Limits())
    if ground.settings.robots == "off":
        return fetcher
    files = _fetcher(ground, Limits(body_bytes=2 * MEBIBYTE))
    return RespectfulFetcher(fetcher, files, ground.network, ground.clock)


def _list_fetcher(ground: Ground) -> FeedFetcher:
    fetcher = _fetcher(ground, Limits(body_bytes=MOST_BYTES))
    return PacedFetcher(fetcher, ground.network, ground.clock)


def _fetcher(ground: Ground, limits: Limits) -> Fetcher:
    opt_outs = OptOuts(ground.settings.blocked_hosts)
    return Fetcher(ground.network, ground.clock, limits, opt_outs)
