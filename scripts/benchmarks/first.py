"""How long after the beginning of its commit a record arrives at the one callback of
its topic, while the hub has nothing else to do.

There is no floor; with ``--engine both`` it is the hub on SQLite, and the two take
turns.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from ipaddress import ip_network
from pathlib import Path

from hub.http import HttpNetwork
from scripts.benchmarks.engines import Engine, named, opened
from scripts.benchmarks.measuring import Finding, Size, percentile, until
from scripts.benchmarks.peers import Peer, running_peer
from scripts.benchmarks.topics import add_topic, callbacks, is_recorded, news
from scripts.benchmarks.working_hub import delivering
from storage.contract import Storage
from storage.records import FeedId, Format

MOST_ABOVE = 10.0
"""Milliseconds."""
_PAUSE = 0.02


async def measure(
    directory: Path, size: Size, engine: Engine = Engine.SQLITE
) -> AsyncIterator[Finding]:
    records = size.pick(200, 50, 3)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        peer = await enter(running_peer(directory, ["127.0.0.1"]))
        storages = await enter(opened(directory, engine))
        network = await enter(HttpNetwork(allow_callbacks=(ip_network("127.0.0.0/8"),)))
        feeds = []
        for number, storage in enumerate(storages):
            await enter(delivering(storage, network))
            deliveries = callbacks(peer.port, f"first-{number}", 1)
            feeds.append(await add_topic(storage, "first", deliveries, Format.JSON))
        latencies: list[list[float]] = [[] for _ in storages]
        for number in range(records + 1):
            for storage, feed, found in zip(storages, feeds, latencies, strict=True):
                latency = await _deliver(storage, feed, peer)
                if number:  # the first opens connections
                    found.append(latency)
    yield _finding(engine, [1_000 * percentile(found, 0.5) for found in latencies])


async def _deliver(storage: Storage, feed: FeedId, peer: Peer) -> float:
    """Seconds."""
    expected = peer.requests + 1
    started = time.monotonic()
    await storage.log.commit(news(feed))
    await peer.wait_for(expected)
    arrived = peer.last
    await until(partial(is_recorded, storage), pause=_PAUSE)
    return arrived - started


def _finding(engine: Engine, medians: list[float]) -> Finding:
    is_compared = len(medians) > 1
    floor = medians[-1] if is_compared else None
    return Finding(
        bench=named("first", engine),
        measure="ms from commit to arrival, p50",
        hub=medians[0],
        floor=floor,
        ratio=medians[0] / floor if floor else None,
        target=f"<= floor + {MOST_ABOVE:g}" if is_compared else "",
        met=floor is None or medians[0] <= floor + MOST_ABOVE,
    )
