"""Deliveries as receivers and publishers make them hard, against the same bare loop.

- ``late``: one topic, 1,000 callbacks that take 50 ms each; the floor has 1,000 in
  flight.
- ``topics``: news of 50 topics at once, with 20 subscribers each; the floor posts as
  many, 256 at once.
- ``hanging``: one topic, 200 callbacks, of which ten never answer. What counts is how
  late the median of the others hears, to when none hangs. Each round has a new topic,
  so that all ten are asked for the first time, while those of before still hang.
- ``first``: from the beginning of a commit to the arrival, on a hub that does nothing
  else; the floor is one post of the same bytes to the same process.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from statistics import median

import aiohttp

from hub.delivery.dispatcher import Dispatcher
from hub.http import HttpNetwork
from hub.runtime.clock import SystemClock
from scripts.benchmarks.bare import Delivery, bare_session, post_all
from scripts.benchmarks.listeners import allow_files
from scripts.benchmarks.measuring import (
    Finding,
    Sample,
    Size,
    Stopwatch,
    alternate,
    cpu_finding,
    percentile,
    rate_finding,
    until,
)
from scripts.benchmarks.receivers import Receivers, running_receivers
from scripts.benchmarks.topics import (
    BODY_BYTES,
    add_topic,
    callbacks,
    is_recorded,
    news,
)
from storage.contract import Storage
from storage.records import FeedId
from storage.sqlite import open_database

CALLBACKS = 1_000
TOPICS = 50
MANY, HANGING = 200, 10
LEAST_ROUNDS = 5
"""Of 200 deliveries, which take some ten milliseconds: one says nothing."""
IN_FLIGHT, WORKERS = 1_000, 256
LEAST_RATE = 0.8
MOST_SLOWED = 2.0
FIRST_P50, FIRST_P99 = 15.0, 50.0  # milliseconds
BODY = b"<!-- " + b"x" * (BODY_BYTES - 9) + b" -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    storage: Storage
    receivers: Receivers
    session: aiohttp.ClientSession


async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
    allow_files(8 * CALLBACKS)
    rounds = size.pick(11, 1, 1)
    async with _delivering(directory) as scene:
        for finding in await _late(scene, rounds):
            yield finding
        for finding in await _topics(scene, rounds):
            yield finding
        yield await _hanging(scene, size.pick(rounds, LEAST_ROUNDS, 1))
        for finding in await _first(scene, size.pick(500, 20, 2)):
            yield finding


@asynccontextmanager
async def _delivering(directory: Path) -> AsyncIterator[_Scene]:
    async with AsyncExitStack() as stack:
        receivers = await stack.enter_async_context(running_receivers(directory))
        storage = await open_database(directory / "hub.db")
        stack.push_async_callback(storage.close)
        network = await stack.enter_async_context(
            HttpNetwork(allow_callbacks=(ip_network("127.0.0.0/8"),))
        )
        session = await stack.enter_async_context(bare_session(connections=IN_FLIGHT))
        dispatcher = asyncio.create_task(
            Dispatcher(storage, network, SystemClock(), "https://hub.example/hub").run()
        )
        yield _Scene(storage=storage, receivers=receivers, session=session)
        dispatcher.cancel()
        await asyncio.wait({dispatcher})


async def _late(scene: _Scene, rounds: int) -> list[Finding]:
    deliveries = callbacks(scene.receivers.port, "late", CALLBACKS)
    feeds = [await add_topic(scene.storage, "late", deliveries)]
    samples = await alternate(
        rounds,
        hub=partial(_publish, scene, feeds),
        floor=partial(_post, scene, deliveries, IN_FLIGHT),
    )
    return _findings("late", samples["hub"], samples["floor"])


async def _topics(scene: _Scene, rounds: int) -> list[Finding]:
    deliveries = callbacks(scene.receivers.port, "topics", CALLBACKS)
    each = CALLBACKS // TOPICS
    feeds = [
        await add_topic(scene.storage, f"topic-{number}", deliveries[first:][:each])
        for number, first in enumerate(range(0, CALLBACKS, each))
    ]
    samples = await alternate(
        rounds,
        hub=partial(_publish, scene, feeds),
        floor=partial(_post, scene, deliveries, WORKERS),
    )
    return _findings("topics", samples["hub"], samples["floor"])


def _findings(name: str, hub: list[Sample], floor: list[Sample]) -> list[Finding]:
    bench = f"deliveries {name}"
    return [
        rate_finding(bench, "deliveries", hub, floor, LEAST_RATE),
        cpu_finding(bench, "delivery", hub, floor, None),
    ]


async def _publish(scene: _Scene, feeds: Sequence[FeedId]) -> Sample:
    """News of all feeds at once, until all acknowledgements are stored."""
    expected = scene.receivers.answered + CALLBACKS
    watch = Stopwatch()
    await asyncio.gather(*(scene.storage.log.commit(news(feed)) for feed in feeds))
    await scene.receivers.wait_for(expected)
    ended = scene.receivers.last
    await until(partial(is_recorded, scene.storage), pause=0.02)
    return watch.sample(CALLBACKS, ended)


async def _post(scene: _Scene, deliveries: Sequence[Delivery], workers: int) -> Sample:
    watch = Stopwatch()
    await post_all(scene.session, deliveries, BODY, "application/atom+xml", workers)
    return watch.sample(len(deliveries))


async def _hanging(scene: _Scene, rounds: int) -> Finding:
    medians: dict[int, list[float]] = {0: [], HANGING: []}
    for round in range(rounds + 1):
        for hanging, taken in medians.items():
            heard = await _median_latency(scene, f"{round}-{hanging}", hanging)
            if round:
                taken.append(heard)
    none, some = medians[0], medians[HANGING]
    ratio = median(one / other for one, other in zip(some, none, strict=True))
    return Finding(
        bench="deliveries hanging",
        measure=f"ms to the median of {MANY - HANGING}, {HANGING} hang",
        hub=1_000 * median(some),
        floor=1_000 * median(none),
        ratio=ratio,
        target=f"<= {MOST_SLOWED:g} x",
        met=ratio <= MOST_SLOWED,
    )


async def _median_latency(scene: _Scene, name: str, hanging: int) -> float:
    """Of those that answer, in seconds from the beginning of the commit."""
    port, healthy = scene.receivers.port, MANY - hanging
    deliveries = [
        *callbacks(port, f"hang/{name}", hanging),
        *callbacks(port, f"healthy/{name}", healthy),
    ]
    feed_id = await add_topic(scene.storage, f"hanging-{name}", deliveries)
    expected, told = scene.receivers.answered + healthy, scene.receivers.told
    await scene.storage.log.commit(news(feed_id))
    await scene.receivers.wait_for(expected)
    return median(scene.receivers.latencies(told))


async def _first(scene: _Scene, commits: int) -> list[Finding]:
    deliveries = callbacks(scene.receivers.port, "first", 1)
    feed_id = await add_topic(scene.storage, "first", deliveries)
    told, bare = scene.receivers.told, []
    for _ in range(commits):
        expected = scene.receivers.answered + 1
        await scene.storage.log.commit(news(feed_id))
        await scene.receivers.wait_for(expected)
        await asyncio.sleep(0.15)  # idle again: its acknowledgement is stored
        started = time.monotonic()
        await _post(scene, deliveries, 1)
        bare.append(time.monotonic() - started)
    latencies = scene.receivers.latencies(told)
    return [
        _latency_finding("p50", 0.5, FIRST_P50, latencies, bare),
        _latency_finding("p99", 0.99, FIRST_P99, latencies, bare),
    ]


def _latency_finding(
    name: str,
    share: float,
    most: float,
    latencies: Sequence[float],
    bare: Sequence[float],
) -> Finding:
    milliseconds = 1_000 * percentile(latencies, share)
    return Finding(
        bench="deliveries first",
        measure=f"ms from commit to arrival, {name}",
        hub=milliseconds,
        floor=1_000 * percentile(bare, share),
        target=f"<= {most:g}",
        met=milliseconds <= most,
    )
