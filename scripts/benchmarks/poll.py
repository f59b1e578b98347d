"""1,000 feeds at 1,000 loopback addresses, each answering 304.

The hub: the real poller, from due to committed. The floor: `bare.get_all` with as
many workers, asking for the same documents; with ``--engine both`` it is the hub on
SQLite. The publishers close their connections, so both open one for each request, as a
hub does that comes by every few minutes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import datetime
from functools import partial
from ipaddress import ip_network
from pathlib import Path

import aiohttp

from hub.core.schedule.poll_period import PollingRules
from hub.http import HttpNetwork, Purpose, ResponseLimits
from hub.ingest.document_parser import WorkerParser
from hub.ingest.fetcher import Fetcher
from hub.ingest.poller import Poller
from hub.limits.host_limiter import HostLimiter
from hub.runtime.clock import SystemClock
from scripts.benchmarks.bare import bare_session, get_all
from scripts.benchmarks.engines import Engine, named, opened
from scripts.benchmarks.measuring import (
    Finding,
    Run,
    Sample,
    Size,
    Stopwatch,
    alternate,
    cpu_finding,
    rate_finding,
    until,
)
from scripts.benchmarks.peers import ETAG, Peer, loopback_addresses, running_peer
from storage.contract import Storage
from storage.records import FeedId, NewFeed

FEEDS = 1_000
CONCURRENCY = 64


MOST_OF_SQLITES = 1.3
"""CPU of the hub's process."""


async def measure(
    directory: Path, size: Size, engine: Engine = Engine.SQLITE
) -> AsyncIterator[Finding]:
    addresses = loopback_addresses(size.pick(FEEDS, FEEDS, 50))
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        peer = await enter(running_peer(directory, addresses))
        storages = await enter(opened(directory, engine))
        network = await enter(HttpNetwork(allow_topics=(ip_network("127.0.0.0/8"),)))
        parser = await enter(WorkerParser())
        session = await enter(bare_session(connections=CONCURRENCY))
        urls = [f"http://{address}:{peer.port}/feed" for address in addresses]
        polling: list[Run] = []
        for storage in storages:
            ids = await _add_feeds(storage, urls)
            poller = _poller(storage, network, parser)
            polling.append(partial(_poll_all, poller, storage, ids, peer))
        samples = await alternate(
            size.pick(11, 1, 1),
            hub=polling[0],
            floor=polling[1]
            if engine is Engine.BOTH
            else partial(_get_all, session, urls),
        )
    hub, floor = samples["hub"], samples["floor"]
    most = MOST_OF_SQLITES if engine is Engine.BOTH else 2
    yield cpu_finding(named("poll", engine), "poll", hub, floor, most)
    yield rate_finding(named("poll", engine), "polls", hub, floor, None)


def _poller(storage: Storage, network: HttpNetwork, parser: WorkerParser) -> Poller:
    clock = SystemClock()
    return Poller(
        storage,
        Fetcher(network, clock, ResponseLimits()),
        parser,
        HostLimiter(clock, partial(network.is_exempt, purpose=Purpose.TOPIC)),
        clock,
        PollingRules(),
    )


async def _add_feeds(storage: Storage, urls: list[str]) -> list[FeedId]:
    now = SystemClock().now()
    added = await asyncio.gather(
        *(storage.feeds.add(NewFeed(url=url), now) for url in urls)
    )
    return [feed.id for feed, _is_new in added]


async def _poll_all(
    poller: Poller, storage: Storage, ids: list[FeedId], peer: Peer
) -> Sample:
    """Make all feeds due, and poll until each has its next time stored."""
    due = SystemClock().now().replace(microsecond=0)
    await storage.feeds.defer([(feed_id, due) for feed_id in ids])
    poller.wake()
    expected = peer.requests + len(ids)
    watch = Stopwatch()
    polling = asyncio.create_task(poller.run())
    await peer.wait_for(expected)
    await until(partial(_is_done, storage, due), pause=0.005)
    sample = watch.sample(len(ids))
    polling.cancel()
    await asyncio.gather(polling, return_exceptions=True)
    return sample


async def _is_done(storage: Storage, due: datetime) -> bool:
    return await storage.feeds.next_due() != due


async def _get_all(session: aiohttp.ClientSession, urls: list[str]) -> Sample:
    watch = Stopwatch()
    await get_all(session, urls, ETAG, CONCURRENCY)
    return watch.sample(len(urls))
