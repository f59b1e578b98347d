"""News committed by 256 callers at once, each of a feed of its own: on PostgreSQL.

Each commit has one new entry, its record and a seen-set, and owes a delivery. The
floors: the same on SQLite; and the rows of 256 commits in one statement, again and
again, as fast as the server takes them. The server has its data on the disk of
temporary files; its CPU does not count.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import psycopg

from protocols.model import Entry, Status
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
from storage.packing import pack_bytes
from storage.postgres import open_database as open_postgres
from storage.records import (
    OPERATOR,
    FeedId,
    FetchCommit,
    NewFeed,
    NewNode,
    NewSubscription,
    Polling,
    RecordKind,
    RecordWrite,
    Stored,
)
from storage.sqlite import open_database as open_sqlite
from storage.sqlite.polling_state import encode_cold
from tests.support.postgres_server import durable_server

_START = datetime(2026, 1, 1, tzinfo=UTC)
_SEEN = b"s" * 400
_POLLING = Polling(code=200, last_fetch=_START)
_FLOOR = """
WITH u AS (
    SELECT id, key, sha256(key::bytea) AS hash, body, place
    FROM unnest(%(ids)s::bigint[], %(keys)s::text[], %(bodies)s::bytea[])
        WITH ORDINALITY a (id, key, body, place)
), f AS (
    UPDATE feeds SET polling = %(cold)s, state = state FROM u WHERE feeds.id = u.id
), h AS (
    UPDATE feed_hot SET version = version + 1, next_fetch = next_fetch + 1
    FROM u WHERE feed_id = u.id
), s AS (
    UPDATE schedule SET next_fetch = next_fetch + 1 FROM u WHERE feed_id = u.id
), seen AS (
    INSERT INTO seen_sets SELECT id, %(seen)s FROM u
    ON CONFLICT (feed_id) DO UPDATE SET seen = excluded.seen
), head AS (
    UPDATE log_head SET head = head + %(count)s RETURNING head - %(count)s AS before
), e AS (
    INSERT INTO entries (feed_id, key_hash, key, revision, deleted, sorted_at,
        last_position, body, unlisted)
    SELECT u.id, hash, key, 1, FALSE, 0, before + place, body, FALSE FROM u, head
    RETURNING id, feed_id, last_position
), r AS (
    INSERT INTO records (position, at, feed_id, kind, news, status, refs, is_superseded)
    SELECT last_position, 0, feed_id, 'entries', 64, '{}', int8send(id) || int8send(3),
        FALSE FROM e
), o AS (
    INSERT INTO fanouts SELECT last_position, feed_id, 0 FROM e
)
INSERT INTO fanout_turns SELECT feed_id, last_position, 0 FROM e
ON CONFLICT (feed_id) DO UPDATE SET turn = 0
"""


async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
    callers, each, rounds = size.pick((256, 30, 9), (256, 15, 2), (4, 1, 1))
    async with AsyncExitStack() as stack:
        server = stack.enter_context(durable_server(memory="off"))
        names = [server.create() for _ in range(2)]
        hub, floor = [
            await open_postgres(server.location(name), directory / f"{name}.key")
            for name in names
        ]
        file = await open_sqlite(directory / "hub.db")
        bare = await psycopg.AsyncConnection.connect(
            server.location(names[1]), autocommit=True
        )
        for opened in (hub, floor, file, bare):
            stack.push_async_callback(opened.close)
        await _subscribe_all(floor, callers)
        samples = await alternate(
            rounds,
            hub=await _committing(hub, callers, each),
            sqlite=await _committing(file, callers, each),
            floor=_calling(bare, callers, each),
        )
    hub_samples = samples["hub"]
    yield rate_finding("news", "commits (SQLite)", hub_samples, samples["sqlite"], None)
    yield rate_finding("news", "commits (calls)", hub_samples, samples["floor"], 0.6)
    yield cpu_finding("news", "commit", hub_samples, samples["sqlite"], None)


Run = Callable[[], Coroutine[Any, Any, Sample]]


async def _subscribe_all(storage: Storage, callers: int) -> list[FeedId]:
    await storage.membership.join(NewNode(name="bench", is_alone=True))
    ids = []
    for number in range(callers):
        url = f"https://{number}.example/"
        feed, _is_new = await storage.feeds.add(NewFeed(url=url), _START)
        new = NewSubscription(
            account=OPERATOR, topic=url, feed_id=feed.id, callback=f"{url}callback"
        )
        await storage.subscriptions.add(new, _START)
        ids.append(feed.id)
    return ids


async def _committing(storage: Storage, callers: int, each: int) -> Run:
    ids = await _subscribe_all(storage, callers)
    versions = {each.feed.id: each.version for each in await storage.feeds.targets(ids)}
    numbers = count()

    async def commit(feed_id: FeedId) -> None:
        for _ in range(each):
            found = _news(feed_id, versions[feed_id], f"entry {next(numbers)}")
            outcome = await storage.log.commit(found)
            if isinstance(outcome, Stored):  # nobody else changes the feed
                versions[feed_id] = outcome.version

    async def run() -> Sample:
        watch = Stopwatch()
        await asyncio.gather(*map(commit, ids))
        return watch.sample(callers * each)

    return run


def _entry(key: str) -> Entry:
    return Entry(key=key, id=key, title=f"The {key}")


def _news(feed_id: FeedId, version: int, key: str) -> FetchCommit:
    record = RecordWrite(
        kind=RecordKind.ENTRIES, status=Status(code=200), entries=((key, True),)
    )
    return FetchCommit(
        feed_id=feed_id,
        version=version,
        at=_START,
        next_fetch=_START,
        polling=_POLLING,
        entries=(_entry(key),),
        records=(record,),
        seen=_SEEN,
    )


def _packed(key: str) -> bytes:
    """As many bytes as the hub stores of an entry."""
    return pack_bytes(msgspec.json.encode(_entry(key)))


def _calling(bare: psycopg.AsyncConnection, callers: int, each: int) -> Run:
    numbers = count()

    def rows() -> dict[str, object]:
        keys = [f"entry {next(numbers)}" for _ in range(callers)]
        return {
            "ids": [*range(1, callers + 1)],
            "keys": keys,
            "bodies": [_packed(each) for each in keys],
            "cold": encode_cold(_POLLING),
            "seen": _SEEN,
            "count": callers,
        }

    async def run() -> Sample:
        calls = [rows() for _ in range(each)]
        watch = Stopwatch()
        for values in calls:
            await bare.execute(_FLOOR, values, binary=True)
        return watch.sample(callers * each)

    return run
