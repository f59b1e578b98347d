"""How long a feed of 2.5 MB holds up the event loop, from its fetch to its delivery.

The hub: poller, parse worker, storage and dispatcher, as in production. A feed with
other entries each time is fetched; all of them are news, told as JSON, as Atom and as
they are. A tick that should come every 2 ms tells how late the loop is; what other
programs on the machine take from this one does not count.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from random import Random
from statistics import median

from hub.clock import SystemClock
from hub.core.cadence import PollingRules
from hub.delivery.dispatcher import DeliveryLimits, Dispatcher
from hub.net import HttpNetwork, Limits
from hub.parsing.parser import WorkerParser
from hub.polling.fetcher import Fetcher
from hub.polling.poller import Poller
from scripts.benchmarks.documents import make_document, rss
from scripts.benchmarks.measuring import Finding, Size, until
from scripts.benchmarks.peers import Peer, running_peer
from storage.interface import Storage
from storage.records import OPERATOR, FeedId, Format, NewFeed, NewSubscription
from storage.sqlite import open_database

SIZE = 2_500_000
MOST_MILLISECONDS = 20
_TICK = 0.002
_LOOPBACK = (ip_network("127.0.0.0/8"),)
_FORMATS = (Format.JSON, Format.ATOM, Format.AS_IS)


async def measure_blocks(directory: Path, size: Size) -> AsyncIterator[Finding]:
    """One row for long articles, one for short ones, of which there are many."""
    rounds = size.pick(5, 2, 1)
    for kind in ("blog", "news"):
        yield await _measure_kind(directory, kind, rounds)


async def _measure_kind(directory: Path, kind: str, rounds: int) -> Finding:
    home = directory / kind
    home.mkdir()
    _publish(home, kind, 0)
    longest = []
    async with _hub(home) as hub:
        feed_id = await _add_feed(hub)
        await hub.poller.fetch_now(feed_id)  # the first fetch is news to nobody
        for number in range(rounds):
            _publish(home, kind, number + 1)
            longest.append(await _longest_block(hub, feed_id))
    milliseconds = median(longest) * 1e3
    return Finding(
        bench="normalize",
        measure=f"longest block of the event loop, 2.5 MB feed ({kind}), ms",
        hub=milliseconds,
        target=f"<= {MOST_MILLISECONDS}",
        met=milliseconds <= MOST_MILLISECONDS,
    )


def _publish(home: Path, kind: str, number: int) -> None:
    random = Random(number)  # noqa: S311 - made up, not secret
    document = make_document(rss, kind, SIZE, random, is_whole=True)
    (home / "feed").write_bytes(document.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hub:
    storage: Storage
    poller: Poller
    peer: Peer


@asynccontextmanager
async def _hub(home: Path) -> AsyncIterator[_Hub]:
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        peer = await stack.enter_async_context(running_peer(home, ["127.0.0.1"]))
        storage = await open_database(home / "hub.db")
        stack.push_async_callback(storage.close)
        network = await stack.enter_async_context(
            HttpNetwork(allow_topics=_LOOPBACK, allow_callbacks=_LOOPBACK)
        )
        parser = await stack.enter_async_context(WorkerParser())
        fetcher = Fetcher(network, clock, Limits())
        poller = Poller(storage, fetcher, parser, network, clock, PollingRules())
        limits = DeliveryLimits(requests=16)
        hub_url = "https://hub.example/hub"
        dispatcher = Dispatcher(storage, network, clock, hub_url, limits)
        running = [
            asyncio.create_task(poller.run()),
            asyncio.create_task(dispatcher.run()),
        ]
        yield _Hub(storage=storage, poller=poller, peer=peer)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _add_feed(hub: _Hub) -> FeedId:
    now = SystemClock().now()
    origin = f"http://127.0.0.1:{hub.peer.port}"
    topic = f"{origin}/file/feed"
    feed, _is_new = await hub.storage.feeds.add(NewFeed(url=topic), now)
    await hub.storage.feeds.defer([(feed.id, now + timedelta(days=30))])
    for format in _FORMATS:
        new = NewSubscription(
            account=OPERATOR,
            topic=topic,
            feed_id=feed.id,
            callback=f"{origin}/{format}",
            secret="secret",  # noqa: S106 - nobody's
            format=format,
        )
        await hub.storage.subscriptions.add(new, now)
    return feed.id


async def _longest_block(hub: _Hub, feed_id: FeedId) -> float:
    """Seconds, from the fetch to the last acknowledgement."""
    requests = hub.peer.requests
    ticks = _Ticks()
    ticking = asyncio.create_task(ticks.run())
    await hub.poller.fetch_now(feed_id)
    await until(partial(_is_delivered, hub, requests), pause=0.02)
    ticking.cancel()
    await asyncio.gather(ticking, return_exceptions=True)
    return ticks.longest


async def _is_delivered(hub: _Hub, requests: int) -> bool:
    backlog = await hub.storage.backlog()
    is_idle = not (backlog.fanouts or backlog.chunks or backlog.stragglers)
    return is_idle and hub.peer.requests > requests


@dataclass(slots=True)
class _Ticks:
    """``longest``: by how much the latest tick was late, or the CPU that this process
    had in the meantime, if that is less."""

    longest: float = 0.0

    async def run(self) -> None:
        while True:
            begun, cpu = time.monotonic(), time.process_time()
            await asyncio.sleep(_TICK)
            late = time.monotonic() - begun - _TICK
            used = time.process_time() - cpu
            self.longest = max(self.longest, min(late, used))
