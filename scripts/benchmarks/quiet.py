"""What fetches that find nothing write to PostgreSQL's log, by 256 callers at once.

Every fetch has a poll for the history, another time, period, price and velocity. Feeds
have as many polls as are kept of them; a tenth is left out, as pings do, so that feeds
do not fill their eights together. The server has the settings of
docs/how-to/postgresql.md. After each checkpoint every feed is fetched once: what is
logged of whole pages is shared by all feeds on them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path

import psycopg

from scripts.benchmarks.measuring import Finding, Size
from storage.contract import Storage
from storage.postgres import open_database
from storage.records import (
    FeedId,
    FetchCommit,
    FetchTarget,
    NewFeed,
    Poll,
    Polling,
    PollOutcome,
    PollReason,
)
from tests.support.postgres_server import durable_server

CALLERS = 256
MOST_STEADY, MOST_AFTER_CHECKPOINT = 200, 300
_START = datetime(2026, 1, 1, tzinfo=UTC)
_PERIOD = timedelta(hours=2, seconds=37.123456)
_NO_CHECKPOINTS = {"max_wal_size": "4GB", "checkpoint_timeout": "1h"}


async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
    feeds, before, rounds = size.pick((1_024, 96, 8), (512, 80, 8), (32, 2, 1))
    async with AsyncExitStack() as stack:
        server = stack.enter_context(
            durable_server(memory="off", wal_compression="on", **_NO_CHECKPOINTS)
        )
        location = server.location(server.create())
        storage = await open_database(location, directory / "quiet.key")
        stack.push_async_callback(storage.close)
        log = await psycopg.AsyncConnection.connect(location, autocommit=True)
        stack.push_async_callback(log.close)
        ids = await _add_feeds(storage, feeds)
        fetch = partial(_fetch_all, storage, ids, count())
        for number in range(before):
            await fetch()
            if number % 16 == 0:  # as autovacuum would
                await log.execute("VACUUM")
        steady = await _written(log, fetch, rounds, "SELECT 1") / feeds
        after = await _written(log, fetch, rounds, "CHECKPOINT") / feeds
    for name, found, most in (
        ("WAL bytes per fetch", steady, MOST_STEADY),
        ("WAL bytes per fetch, after a checkpoint", after, MOST_AFTER_CHECKPOINT),
    ):
        yield Finding(
            bench="quiet",
            measure=name,
            hub=found,
            target=f"<= {most}",
            met=found <= most,
        )


async def _written(
    log: psycopg.AsyncConnection,
    fetch: Callable[[], Awaitable[None]],
    rounds: int,
    before_each: str,
) -> float:
    """Bytes of the server's log a round."""
    total = 0
    for _ in range(rounds):
        await log.execute(before_each.encode())
        begin = await _end_of(log)
        await fetch()
        total += await _end_of(log) - begin
    return total / rounds


async def _end_of(log: psycopg.AsyncConnection) -> int:
    found = await log.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")
    row = await found.fetchone()
    return int(row[0]) if row else 0


async def _add_feeds(storage: Storage, number: int) -> list[FeedId]:
    ids = []
    for each in range(number):
        feed, _ = await storage.feeds.add(
            NewFeed(url=f"https://{each}.example/"), _START
        )
        ids.append(feed.id)
    return ids


async def _fetch_all(storage: Storage, ids: list[FeedId], rounds: count[int]) -> None:
    round = next(rounds)
    for begin in range(0, len(ids), CALLERS):
        targets = await storage.feeds.targets(ids[begin : begin + CALLERS])
        fetches = (_found_nothing(each, round) for each in targets)
        await asyncio.gather(*map(storage.log.commit, fetches))


def _found_nothing(target: FetchTarget, round: int) -> FetchCommit:
    feed = target.feed
    at = _START + round * _PERIOD
    period = _PERIOD.total_seconds() + feed.id / 7 + round / 13
    is_noted = round >= feed.id % 8 and (feed.id * 7_919 + round * 104_729) % 10
    return FetchCommit(
        feed_id=feed.id,
        version=target.version,
        at=at,
        next_fetch=at + timedelta(seconds=period),
        former=feed.polling,
        polling=Polling(
            period=period,
            last_fetch=at,
            last_success=at,
            last_parse=at,
            code=304,
            message="Fetched (ring) 304",
            unchanged=round,
            price=75 + round / 3,
            velocity=1.5 / (round + 1),
        ),
        poll=Poll(
            at=at,
            reason=PollReason.PLANNED,
            outcome=PollOutcome.UNCHANGED,
            code=304,
            milliseconds=feed.id % 1_000,
        )
        if is_noted
        else None,
    )
