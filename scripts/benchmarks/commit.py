"""Durable one-row transactions by 200 concurrent callers, ``synchronous=FULL``.

The hub: `FeedStore.defer`, one feed a call, through the group-commit writer. The
floor: the same UPDATE on the same columns through aiosqlite, with a lock around it
and a commit for each.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiosqlite

from scripts.benchmarks.measuring import (
    Finding,
    Sample,
    Size,
    Stopwatch,
    alternate,
    cpu_finding,
    rate_finding,
)
from storage.contract import Storage
from storage.records import FeedId, NewFeed
from storage.sqlite import open_database

CALLERS = 200
_START = datetime(2026, 1, 1, tzinfo=UTC)


async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
    each, floor_each, rounds = size.pick((200, 5, 15), (50, 2, 1), (5, 1, 1))
    storage = await open_database(directory / "hub.db")
    bare = await aiosqlite.connect(directory / "floor.db", isolation_level=None)
    try:
        ids = await _add_feeds(storage)
        await _make_floor(bare)
        samples = await alternate(
            rounds,
            hub=lambda: _concurrently(each, _defer(storage, ids, each)),
            floor=lambda: _concurrently(floor_each, _locked_update(bare)),
        )
    finally:
        await storage.close()
        await bare.close()
    hub, floor = samples["hub"], samples["floor"]
    yield rate_finding("commit", "durable transactions", hub, floor, 30)
    yield cpu_finding("commit", "transaction", hub, floor, None)


async def _concurrently(
    each: int, transaction: Callable[[int, int], Awaitable[None]]
) -> Sample:
    async def call(caller: int) -> None:
        for turn in range(each):
            await transaction(caller, turn)

    watch = Stopwatch()
    async with asyncio.TaskGroup() as group:
        for caller in range(CALLERS):
            group.create_task(call(caller))
    return watch.sample(CALLERS * each)


async def _add_feeds(storage: Storage) -> list[FeedId]:
    added = [
        await storage.feeds.add(NewFeed(url=f"https://{number}.example/"), _START)
        for number in range(CALLERS)
    ]
    return [feed.id for feed, _is_new in added]


def _defer(
    storage: Storage, ids: list[FeedId], turns: int
) -> Callable[[int, int], Awaitable[None]]:
    times = [_START + timedelta(seconds=turn) for turn in range(turns)]

    async def transaction(caller: int, turn: int) -> None:
        await storage.feeds.defer([(ids[caller], times[turn])])

    return transaction


async def _make_floor(bare: aiosqlite.Connection) -> None:
    await bare.executescript(
        """
        PRAGMA journal_mode = WAL;
        PRAGMA synchronous = FULL;
        CREATE TABLE feed (id INTEGER PRIMARY KEY, url TEXT, next_fetch INTEGER);
        CREATE INDEX feed_due ON feed (next_fetch);
        """
    )
    await bare.executemany(
        "INSERT INTO feed VALUES (?, ?, 0)",
        [(number, f"https://{number}.example/") for number in range(CALLERS)],
    )


def _locked_update(
    bare: aiosqlite.Connection,
) -> Callable[[int, int], Awaitable[None]]:
    lock = asyncio.Lock()

    async def transaction(caller: int, turn: int) -> None:
        async with lock:
            await bare.execute("BEGIN")
            await bare.execute(
                "UPDATE feed SET next_fetch = ? WHERE id = ?", (turn, caller)
            )
            await bare.commit()

    return transaction
