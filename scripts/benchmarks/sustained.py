"""Two minutes of everything at once, in one process as in a hub.

Deliveries at half the rate that the bare loop had just before, to 1,000 callbacks of
ten topics; 6,000 feeds that are polled every minute and answer 304 but for the first
time, which does not count: 100 polls a second; 1,000 websockets that receive one
message a second. What counts is how long after the beginning of its commit a delivery
arrives, and what memory grows by after the first quarter.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from scripts.benchmarks.bare import Delivery, bare_session, post_all
from scripts.benchmarks.listeners import Listeners, allow_files, listening
from scripts.benchmarks.live import (
    CONNECTIONS,
    TARGET,
    TOPIC,
    add_feed,
    connected,
    message,
    serving,
)
from scripts.benchmarks.measuring import Finding, Sample, Size, Stopwatch, percentile
from scripts.benchmarks.peers import Peer, loopback_addresses, running_peer
from scripts.benchmarks.receivers import Receivers, running_receivers
from scripts.benchmarks.topics import BODY_BYTES, add_topic, callbacks, news
from scripts.benchmarks.working_hub import HOSTS, POLLS, Working, add_polled
from storage.contract import Storage
from storage.records import FeedId, Format
from storage.sqlite import open_database

TOPICS, EACH = 10, 100
WORKERS = 256
MOST_LATE = 1.0
MOST_GROWTH = 20.0
BODY = b"<!-- " + b"x" * (BODY_BYTES - 9) + b" -->"
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Times:
    """Seconds; feeds are asked once a ``period``."""

    measured: float = 120.0
    period: int = 60


QUICK = _Times(measured=12.0, period=12)
SMALLEST = _Times(measured=1.0, period=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    storage: Storage
    receivers: Receivers
    publishers: Peer
    listeners: Listeners
    feeds: Sequence[FeedId]
    heard: FeedId
    connections: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What came of it; rates are per second."""

    seconds: float
    sent: int
    polls: int
    messages: int
    latencies: Sequence[float]
    cpu: float
    grown: float  # megabytes


async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
    allow_files(8 * CONNECTIONS)
    times = size.pick(_Times(), QUICK, SMALLEST)
    connections = size.pick(CONNECTIONS, CONNECTIONS, 50)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        receivers = await enter(running_receivers(directory))
        publishers = await enter(running_peer(directory, loopback_addresses(HOSTS)))
        storage = await open_database(directory / "hub.db")
        stack.push_async_callback(storage.close)
        deliveries = callbacks(receivers.port, "at-once", TOPICS * EACH)
        bare = max(sample.rate for sample in await post_bare(deliveries))
        feeds = await add_topics(storage, deliveries)
        heard = await add_feed(storage, TOPIC)
        await add_polled(storage, publishers.port, times.period)
        port, metrics = await enter(serving(storage))
        listeners = await enter(
            listening(directory, "websocket", port, TARGET, connections)
        )
        await connected(metrics, "websocket", connections)
        await enter(Working(storage, times.period))
        await publishers.wait_for(POLLS * times.period)
        scene = _Scene(
            storage=storage,
            receivers=receivers,
            publishers=publishers,
            listeners=listeners,
            feeds=feeds,
            heard=heard,
            connections=connections,
        )
        run = await _run(scene, bare / 2, times.measured)
    for finding in _findings(run, bare):
        yield finding


async def add_topics(storage: Storage, deliveries: Sequence[Delivery]) -> list[FeedId]:
    """A hundred callbacks for each."""
    return [
        await add_topic(
            storage,
            f"topic-{number}",
            deliveries[EACH * number :][:EACH],
            Format.JSON,  # every record is delivered; as it is only the latest
        )
        for number in range(len(deliveries) // EACH)
    ]


async def post_bare(deliveries: Sequence[Delivery], rounds: int = 2) -> list[Sample]:
    """So many rounds, after one that opens the connections."""
    async with bare_session(connections=WORKERS) as session:
        samples = []
        for _ in range(1 + rounds):
            watch = Stopwatch()
            await post_all(session, deliveries, BODY, "application/atom+xml", WORKERS)
            samples.append(watch.sample(len(deliveries)))
    return samples[1:]


async def _run(scene: _Scene, rate: float, seconds: float) -> _Run:
    before = (scene.receivers.answered, scene.publishers.requests)
    told, messages = scene.receivers.told, scene.listeners.messages
    watch, started = Stopwatch(), time.monotonic()
    async with asyncio.TaskGroup() as group:
        growth = group.create_task(_growth(seconds))
        live = group.create_task(_speak(scene, started + seconds))
        published = group.create_task(
            publish(scene.storage, scene.feeds, rate, started + seconds)
        )
    sent = published.result()
    polls = scene.publishers.requests - before[1]
    sample = watch.sample(sent)
    await scene.receivers.wait_for(before[0] + sent)
    await scene.listeners.wait_for(messages + live.result() * scene.connections)
    return _Run(
        seconds=sample.seconds,
        sent=sent,
        polls=polls,
        messages=scene.listeners.messages - messages,
        latencies=scene.receivers.latencies(told),
        cpu=sample.cpu,
        grown=growth.result(),
    )


async def publish(
    storage: Storage, feeds: Sequence[FeedId], rate: float, until: float
) -> int:
    """News of one topic after the other, so that as many are delivered a second.

    However late the hub is: what is due is committed. Returns how many deliveries.
    """
    commits, started = 0, time.monotonic()
    async with asyncio.TaskGroup() as group:
        while (now := time.monotonic()) < until:
            while commits * EACH < rate * (now - started):
                feed = feeds[commits % len(feeds)]
                group.create_task(storage.log.commit(news(feed)))
                commits += 1
            await asyncio.sleep(EACH / rate / 4)
    return commits * EACH


async def _speak(scene: _Scene, until: float) -> int:
    """One message a second to all who listen; returns how many."""
    spoken, started = 0, time.monotonic()
    while time.monotonic() < until:
        await scene.storage.log.commit(message(scene.heard))
        spoken += 1
        await asyncio.sleep(max(0.0, started + spoken - time.monotonic()))
    return spoken


async def _growth(seconds: float) -> float:
    """Megabytes of this process's memory, from the first quarter to the end."""
    await asyncio.sleep(seconds / 4)
    before = megabytes()
    await asyncio.sleep(seconds * 3 / 4)
    return megabytes() - before


def megabytes() -> float:
    """Resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * _PAGE / 2**20


def _findings(run: _Run, bare: float) -> list[Finding]:
    late = percentile(run.latencies, 0.99)
    rate = run.sent / run.seconds
    polled = run.polls / run.seconds
    return [
        Finding(
            bench="sustained",
            measure="deliveries per second",
            hub=rate,
            floor=bare,
            ratio=rate / bare,
            target=">= 0.45 x",
            met=rate >= 0.45 * bare,
        ),
        Finding(
            bench="sustained",
            measure="polls per second",
            hub=polled,
            target=">= 90",
            met=polled >= 90,
        ),
        Finding(
            bench="sustained",
            measure="websocket messages per second",
            hub=run.messages / run.seconds,
        ),
        Finding(
            bench="sustained",
            measure="CPU us per delivery, all else included",
            hub=run.cpu / run.sent * 1e6,
        ),
        Finding(
            bench="sustained",
            measure="ms from commit to arrival, p50",
            hub=1_000 * percentile(run.latencies, 0.5),
        ),
        Finding(
            bench="sustained",
            measure="ms from commit to arrival, p99",
            hub=1_000 * late,
            target=f"<= {1_000 * MOST_LATE:g}",
            met=late <= MOST_LATE,
        ),
        Finding(
            bench="sustained",
            measure="memory growth after a quarter, MB",
            hub=run.grown,
            target=f"<= {MOST_GROWTH:g}",
            met=run.grown <= MOST_GROWTH,
        ),
    ]
