"""The steps of polls: feeds that are due at a rate, and answer 304."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import median

from hub.runtime.clock import SystemClock
from scripts.benchmarks.bare import bare_session, get_all
from scripts.benchmarks.measuring import Finding, Sample, Stopwatch, until
from scripts.benchmarks.peers import ETAG, Peer, loopback_addresses, running_peer
from scripts.benchmarks.working_hub import Working
from storage.contract import Storage
from storage.records import FeedId, NewFeed

HOSTS = 2_000
"""Since the hub asks one only once a second."""
WORKERS = 64
HOUR = 3_600
LEAD = timedelta(seconds=1)
"""Before the first of a step is due, so that the hub is up."""
ROUNDS, FLOOR = 3, 500


async def measure_polls(
    directory: Path, storage: Storage, steps: Sequence[int], seconds: float
) -> AsyncIterator[Finding]:
    count = round(max(steps) * seconds)
    hosts = loopback_addresses(min(HOSTS, count))
    async with running_peer(directory, hosts) as peer:
        urls = [
            f"http://{hosts[number % len(hosts)]}:{peer.port}/feed/{number}"
            for number in range(count)
        ]
        floor = await _floor(urls[:FLOOR])
        feeds = await _add(storage, urls, peer)
        for rate in steps:
            due = feeds[: round(rate * seconds)]
            sample = await _poll(storage, due, rate, peer)
            for finding in _findings(rate, sample, floor):
                yield finding


async def _floor(urls: Sequence[str]) -> float:
    """CPU in microseconds of a bare conditional request."""
    samples = []
    async with bare_session(connections=WORKERS) as session:
        for _ in range(ROUNDS):
            watch = Stopwatch()
            await get_all(session, urls, ETAG, WORKERS)
            samples.append(watch.sample(len(urls)))
    return median(sample.microseconds for sample in samples)


async def _add(storage: Storage, urls: Sequence[str], peer: Peer) -> list[FeedId]:
    """Feeds that were read once, which does not count."""
    now = SystemClock().now()
    added = await asyncio.gather(
        *(storage.feeds.add(NewFeed(url=url), now) for url in urls)
    )
    expected = peer.requests + len(urls)
    async with Working(storage, HOUR):
        await peer.wait_for(expected)
        await until(partial(_is_done, storage), pause=0.05)
    return [feed.id for feed, _is_new in added]


async def _poll(
    storage: Storage, feeds: Sequence[FeedId], rate: int, peer: Peer
) -> Sample:
    """One after the other at the rate, till the last was asked."""
    start = SystemClock().now() + LEAD
    gap = timedelta(seconds=1) / rate
    await storage.feeds.defer(
        [(feed_id, start + number * gap) for number, feed_id in enumerate(feeds)]
    )
    expected = peer.requests + len(feeds)
    async with Working(storage, HOUR):
        await asyncio.sleep((start - SystemClock().now()).total_seconds())
        watch, began = Stopwatch(), time.monotonic()
        await peer.wait_for(expected)
        await until(partial(_is_done, storage), pause=0.005)
        sample = watch.sample(len(feeds))
    return Sample(
        operations=len(feeds),
        seconds=max(peer.last - began, gap.total_seconds()),
        cpu=sample.cpu,
    )


async def _is_done(storage: Storage) -> bool:
    """Whether all that is due has its next time stored, about an hour from now."""
    due = await storage.feeds.next_due()
    return due is None or due > SystemClock().now() + timedelta(seconds=HOUR / 2)


def _findings(rate: int, sample: Sample, floor: float) -> tuple[Finding, Finding]:
    return (
        Finding(
            bench="ladder",
            measure=f"{rate:,} polls asked for: polls per second",
            hub=sample.rate,
        ),
        Finding(
            bench="ladder",
            measure=f"{rate:,} polls asked for: CPU us per poll",
            hub=sample.microseconds,
            floor=floor,
            ratio=sample.microseconds / floor,
        ),
    )
