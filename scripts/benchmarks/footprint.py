"""What a whole hub weighs: idle feeds, overdue feeds, subscriptions on disk.

Each number is the resident memory of ``fanfare serve`` on one database, against that
on an empty one.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from hub.runtime.clock import SystemClock
from scripts.benchmarks.hub_under_test import running_hub
from scripts.benchmarks.measuring import Finding, Size
from scripts.benchmarks.peers import Peer, loopback_addresses, running_peer
from storage.contract import Storage
from storage.records import OPERATOR, FeedId, NewFeed, NewSubscription
from storage.sqlite import open_database

Value = TypeVar("Value")

_BATCH = 1_000
_HOSTS = 1_000
_SETTLED = 4.0  # seconds after which an idle hub has done what it does at start
_FIRST_POLL = 5.0  # seconds
_GROWTH = 100.0  # MB
_FLAT = 20.0  # MB, between two moments of steady work


async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
    feeds, subscriptions, seconds = size.pick(
        (100_000, 1_000_000, 30.0), (10_000, 100_000, 4.0), (500, 500, 0.5)
    )
    settled = size.pick(_SETTLED, _SETTLED, 0.1)
    empty = await _idle_megabytes(directory / "empty" / "hub.db", settled)
    yield _finding("empty hub, MB", empty, None)
    async with running_peer(directory, loopback_addresses(_HOSTS)) as peer:
        overdue = directory / "overdue" / "hub.db"
        ids = await _add_feeds(overdue, feeds, peer.port)
        idle = _copied(overdue, directory / "idle")
        await _defer_all(idle, ids)
        subscribed = directory / "subscribed" / "hub.db"
        await _add_subscriptions(subscribed, subscriptions)
        idle_growth = await _idle_megabytes(idle, settled) - empty
        yield _finding(f"{feeds:,} idle feeds, MB more", idle_growth, _GROWTH)
        disk_growth = await _idle_megabytes(subscribed, settled) - empty
        yield _finding(f"{subscriptions:,} subscriptions, MB more", disk_growth, _FLAT)
        work = await _overdue(overdue, peer, seconds)
    yield _finding(f"{feeds:,} overdue: first poll, s", work.first_poll, _FIRST_POLL)
    yield _finding(f"{feeds:,} overdue: polls per second", work.rate, None)
    yield _finding(f"{feeds:,} overdue: growth at work, MB", work.growth, _FLAT)


async def _idle_megabytes(database: Path, settled: float) -> float:
    async with running_hub(database) as hub:
        await hub.wait_ready()
        await asyncio.sleep(settled)
        return hub.megabytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """How a hub works off overdue feeds; growth in MB, after the first quarter."""

    first_poll: float  # seconds from its start
    rate: float
    growth: float


async def _overdue(database: Path, peer: Peer, seconds: float) -> _Work:
    async with running_hub(database) as hub:
        await peer.wait_for(1)
        first_poll = peer.last - hub.started
        await asyncio.sleep(seconds / 4)
        early, polled = hub.megabytes, peer.requests
        await asyncio.sleep(seconds * 3 / 4)
        return _Work(
            first_poll=first_poll,
            rate=(peer.requests - polled) / (seconds * 3 / 4),
            growth=hub.megabytes - early,
        )


async def _add_feeds(database: Path, count: int, port: int) -> list[FeedId]:
    """Feeds that are due at once, spread over all the peer's addresses."""
    now = SystemClock().now()
    hosts = loopback_addresses(_HOSTS)
    urls = [
        f"http://{hosts[number % _HOSTS]}:{port}/{number}" for number in range(count)
    ]
    ids: list[FeedId] = []
    async with _opened(database) as storage:
        for batch in _batches(urls):
            added = await asyncio.gather(
                *(storage.feeds.add(NewFeed(url=url), now) for url in batch)
            )
            ids += [feed.id for feed, _is_new in added]
    return ids


async def _add_subscriptions(database: Path, count: int) -> None:
    """One through the API, the others as copies of its row."""
    now = SystemClock().now()
    topic = "https://publisher.example/"
    async with _opened(database) as storage:
        feed, _is_new = await storage.feeds.add(NewFeed(url=topic), now)
        await storage.feeds.defer([(feed.id, now + timedelta(days=30))])
        await storage.subscriptions.add(
            NewSubscription(
                account=OPERATOR,
                topic=topic,
                feed_id=feed.id,
                callback="https://subscriber.example/",
            ),
            now,
        )
    await asyncio.to_thread(_copy_subscription, database, count - 1)


def _copy_subscription(database: Path, count: int) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(
            """
            WITH RECURSIVE numbers (number) AS (
                VALUES (1) UNION ALL SELECT number + 1 FROM numbers WHERE number < ?
            )
            INSERT INTO subscriptions (
                account_id, topic_id, feed_id, callback_hash, callback, secret,
                algorithm, format, updates, batch, state, from_position, lease_end,
                created_at, exhausted, ended_reason
            )
            SELECT
                account_id, topic_id, feed_id, randomblob(16), callback || number,
                secret, algorithm, format, updates, batch, state, from_position,
                lease_end, created_at, exhausted, ended_reason
            FROM (SELECT * FROM subscriptions LIMIT 1), numbers
            """,
            (count,),
        )


@asynccontextmanager
async def _opened(database: Path) -> AsyncIterator[Storage]:
    database.parent.mkdir(exist_ok=True)
    storage = await open_database(database)
    try:
        yield storage
    finally:
        await storage.close()


async def _defer_all(database: Path, ids: Sequence[FeedId]) -> None:
    later = SystemClock().now() + timedelta(days=30)
    async with _opened(database) as storage:
        for batch in _batches(ids):
            await storage.feeds.defer([(feed_id, later) for feed_id in batch])


def _copied(database: Path, directory: Path) -> Path:
    shutil.copytree(database.parent, directory)
    return directory / database.name


def _batches(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    for start in range(0, len(values), _BATCH):
        yield values[start : start + _BATCH]


def _finding(measure: str, value: float, at_most: float | None) -> Finding:
    return Finding(
        bench="footprint",
        measure=measure,
        hub=value,
        target="" if at_most is None else f"<= {at_most:g}",
        met=at_most is None or value <= at_most,
    )
