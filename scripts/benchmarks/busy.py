"""Records of many feeds, of which a tenth have subscribers, while as many are polled.

10,000 feeds: of 1,000 somebody is told, of most of these five, of a few a thousand. 130
records are committed a second, each of any feed, so that some 13 a second are told to
some 900 callbacks; 250 feeds a second are polled and answer 304. The hub is a whole
one, which makes words to be searched and pages of all of it. What counts is how long
after the beginning of its commit a delivery arrives, of all and of the small topics,
which must not wait behind the large ones or behind what nobody is told.

Then once more on a disk that takes long to flush, where it shows how many transactions
deliveries have to wait for.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from random import Random

from hub.runtime.clock import SystemClock
from hub.settings import Settings
from scripts.benchmarks.measuring import (
    Finding,
    Sample,
    Size,
    Stopwatch,
    percentile,
    until,
)
from scripts.benchmarks.peers import Peer, loopback_addresses, running_peer
from scripts.benchmarks.receivers import Receivers, running_receivers
from scripts.benchmarks.topics import add_topic, callbacks, news
from scripts.benchmarks.words import write_words
from scripts.benchmarks.working_hub import HOSTS, add_polled, serving_hub
from storage.contract import Storage
from storage.records import FeedId, Format, NewFeed
from storage.sqlite import open_database
from storage.sqlite.connection_threads import ConnectionThreads, open_for_writing

WORDS = 400
"""Of an entry."""

MOST_LATE = 1_000.0
MOST_LATE_OF_SMALL = 100.0
FLUSH_SECONDS = 0.02
"""As a disk of spinning metal takes, or a busy one in a cloud."""

REST = 1.0
"""Seconds after the last commit at which nothing waits any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicGroup:
    """So many ``topics`` with so many ``subscribers`` each."""

    topics: int
    subscribers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """``records`` and ``polls`` a second, for so many ``seconds``."""

    feeds: int = 10_000
    small: TopicGroup = TopicGroup(topics=800, subscribers=5)
    others: tuple[TopicGroup, ...] = (
        TopicGroup(topics=150, subscribers=100),
        TopicGroup(topics=50, subscribers=1_000),
    )
    records: int = 130
    polls: int = 250
    period: int = 20
    """Seconds between two polls of a feed."""

    seconds: float = 60.0


QUICK = Scale(seconds=15.0, period=8)
SMALLEST = Scale(
    feeds=100,
    small=TopicGroup(topics=8, subscribers=5),
    others=(TopicGroup(topics=2, subscribers=100),),
    polls=50,
    period=2,
    seconds=1.0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """``feeds``: how many are told of each; the small topics have receivers of their
    own, so that it can be told how late they are."""

    storage: Storage
    small: Receivers
    others: Receivers
    feeds: Mapping[FeedId, int]

    @property
    def answered(self) -> int:
        return self.small.answered + self.others.answered


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """``waiting``: records and chunks that waited a moment after the last commit."""

    sample: Sample
    polls: float  # a second
    small: Sequence[float]  # seconds from commit to arrival
    all: Sequence[float]
    waiting: int


async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
    scale = size.pick(Scale(), QUICK, SMALLEST)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        small, others = [
            await enter(running_receivers(_made(directory / name)))
            for name in ("small", "others")
        ]
        publishers = await enter(running_peer(directory, loopback_addresses(HOSTS)))
        disk = SlowDisk()
        threads = ConnectionThreads(open_for_writing=disk.open)
        storage = await open_database(directory / "hub.db", threads=threads)
        stack.push_async_callback(storage.close)
        feeds = {
            **await _add_group(storage, small, scale.small),
            **await _add_groups(storage, others, scale.others),
        }
        feeds |= await _add_unheard(storage, scale.feeds - len(feeds))
        scene = _Scene(storage=storage, small=small, others=others, feeds=feeds)
        await add_polled(storage, publishers.port, scale.period, scale.polls)
        await enter(serving_hub(storage, _settings(directory, scale.period)))
        await publishers.wait_for(scale.polls * scale.period)
        await _publish(scene, scale.records, scale.period / 4)  # opens the connections
        for finding in _findings("busy", await _run(scene, scale, publishers)):
            yield finding
        disk.flush_seconds = FLUSH_SECONDS
        for finding in _findings(
            "busy, slow disk", await _run(scene, scale, publishers)
        ):
            yield finding


class SlowDisk:
    """Takes so long for each COMMIT of something, on top of what the disk there is
    takes. ``flushes``: how many there were."""

    def __init__(self) -> None:
        self.flush_seconds = 0.0
        self.flushes = 0

    def open(self, path: Path) -> sqlite3.Connection:
        connection = open_for_writing(path)
        flushed = connection.total_changes

        def flush(statement: str) -> None:
            nonlocal flushed
            if statement == "COMMIT" and connection.total_changes > flushed:
                flushed = connection.total_changes
                self.flushes += 1
                time.sleep(self.flush_seconds)

        connection.set_trace_callback(flush)
        return connection


def _settings(directory: Path, period: int) -> Settings:
    loopback = (ip_network("127.0.0.0/8"),)
    return Settings(
        database=f"sqlite:{directory / 'hub.db'}",
        allow_callback_networks=loopback,
        allow_topic_networks=loopback,
        min_period=period,
        max_period=period,
        contact="https://hub.example/",
        log_level="error",
    )


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


async def _add_groups(
    storage: Storage, receivers: Receivers, groups: Sequence[TopicGroup]
) -> dict[FeedId, int]:
    added: dict[FeedId, int] = {}
    for group in groups:
        added |= await _add_group(storage, receivers, group)
    return added


async def _add_group(
    storage: Storage, receivers: Receivers, group: TopicGroup
) -> dict[FeedId, int]:
    added = {}
    for number in range(group.topics):
        name = f"{group.subscribers}-{number}"
        deliveries = callbacks(receivers.port, name, group.subscribers)
        feed_id = await add_topic(storage, name, deliveries, Format.JSON)
        added[feed_id] = group.subscribers
    return added


async def _add_unheard(storage: Storage, count: int) -> dict[FeedId, int]:
    """Feeds that nobody subscribes to."""
    now = SystemClock().now()
    urls = [f"https://{number}.unheard.example/feed" for number in range(count)]
    added = await asyncio.gather(
        *(storage.feeds.add(NewFeed(url=url), now) for url in urls)
    )
    ids = [feed.id for feed, _is_new in added]
    await storage.feeds.defer([(each, now + timedelta(days=30)) for each in ids])
    return dict.fromkeys(ids, 0)


async def _run(scene: _Scene, scale: Scale, publishers: Peer) -> _Run:
    told = [each.told for each in (scene.small, scene.others)]
    answered, polled = scene.answered, publishers.requests
    watch = Stopwatch()
    expected = await _publish(scene, scale.records, scale.seconds)
    sample = watch.sample(expected)
    polls = publishers.requests - polled
    await asyncio.sleep(REST)
    backlog = await scene.storage.backlog()
    await until(partial(_has_answered, scene, answered + expected), pause=0.02)
    small, others = (
        each.latencies(first)
        for each, first in zip((scene.small, scene.others), told, strict=True)
    )
    return _Run(
        sample=sample,
        polls=polls / sample.seconds,
        small=small,
        all=[*small, *others],
        waiting=backlog.fanouts + backlog.chunks,
    )


async def _has_answered(scene: _Scene, expected: int) -> bool:
    return scene.answered >= expected


async def _publish(scene: _Scene, rate: int, seconds: float) -> int:
    """News of any feed, at the rate however late the hub is.

    Returns how many deliveries that makes.
    """
    draw, feeds = Random(1), list(scene.feeds)  # noqa: S311 - hides nothing
    texts = [write_words(draw, WORDS) for _ in range(100)]
    commits = deliveries = 0
    started = time.monotonic()
    async with asyncio.TaskGroup() as group:
        while (passed := time.monotonic() - started) < seconds:
            while commits < rate * passed:
                feed_id = draw.choice(feeds)
                group.create_task(
                    scene.storage.log.commit(news(feed_id, draw.choice(texts)))
                )
                deliveries += scene.feeds[feed_id]
                commits += 1
            await asyncio.sleep(0.5 / rate)
    return deliveries


def _findings(bench: str, run: _Run) -> list[Finding]:
    return [
        Finding(bench=bench, measure="deliveries per second", hub=run.sample.rate),
        Finding(bench=bench, measure="polls per second", hub=run.polls),
        Finding(
            bench=bench,
            measure="CPU us per delivery, all else included",
            hub=run.sample.microseconds,
        ),
        _late(bench, "p50", run.all, 0.5, None),
        _late(bench, "p99", run.all, 0.99, MOST_LATE),
        _late(bench, "p50 of small topics", run.small, 0.5, MOST_LATE_OF_SMALL),
        _late(bench, "p99 of small topics", run.small, 0.99, None),
        Finding(
            bench=bench,
            measure="records and chunks that wait at the end",
            hub=run.waiting,
            target="<= 0",
            met=run.waiting == 0,
        ),
    ]


def _late(
    bench: str,
    name: str,
    latencies: Sequence[float],
    share: float,
    at_most: float | None,
) -> Finding:
    milliseconds = 1_000 * percentile(latencies, share) if latencies else 0.0
    return Finding(
        bench=bench,
        measure=f"ms from commit to arrival, {name}",
        hub=milliseconds,
        target="" if at_most is None else f"<= {at_most:g}",
        met=at_most is None or milliseconds <= at_most,
    )
