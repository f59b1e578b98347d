"""Answers that are lost with their connections: what was written is written once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from protocols.model import Status
from storage.errors import StorageError, TermEnded
from storage.postgres import open_database
from storage.postgres.operations import PostgresStorage
from storage.read_patience import READ_PATIENCE
from storage.records import (
    NewFeed,
    NewNode,
    Position,
    RecordKind,
    RecordWrite,
    Stored,
    StoredFeed,
)
from tests.support.documents import an_entry
from tests.support.new_database import new_postgres
from tests.support.storage_scene import START, fetch

FEEDS, ROUNDS = 20, 6
STEP = 0.01
"""Seconds by which connections are ended later in each round."""
TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@asynccontextmanager
async def opened(location: str, key: Path) -> AsyncIterator[PostgresStorage]:
    storage = await open_database(location, key)
    try:
        yield storage
    finally:
        await storage.close()


def terminate(location: str) -> None:
    """All other connections are ended by the server."""
    with psycopg.connect(location, autocommit=True) as connection:
        connection.execute(TERMINATE)


async def commit(
    storage: PostgresStorage, feed: StoredFeed, key: str
) -> tuple[Position, ...]:
    record = RecordWrite(
        kind=RecordKind.ENTRIES, status=Status(code=200), entries=((key, True),)
    )
    found = fetch(feed, entries=(an_entry(key),), records=(record,))
    outcome = await storage.log.commit(found)
    assert isinstance(outcome, Stored)
    return outcome.positions


async def test_commits_are_stored_once_whatever_becomes_of_connections(
    tmp_path: Path,
) -> None:
    async with new_postgres() as location, opened(location, tmp_path / "key") as hub:
        feeds = [
            (await hub.feeds.add(NewFeed(url=f"https://{n}.example/"), START))[0]
            for n in range(FEEDS)
        ]
        positions: list[Position] = []
        for number in range(ROUNDS):
            async with asyncio.TaskGroup() as tasks:
                committing = [
                    tasks.create_task(commit(hub, each, f"{number} of {each.id}"))
                    for each in feeds
                ]
                await asyncio.sleep(number * STEP)
                await asyncio.to_thread(terminate, location)
            positions += [each for done in committing for each in done.result()]

        records = await hub.log.records(after=Position(0), limit=1_000)
        entries = [
            entry
            for feed in feeds
            for entry in await hub.log.latest_entries(feed.id, 1_000)
        ]

    assert sorted(positions) == [*range(1, FEEDS * ROUNDS + 1)]
    assert [each.position for each in records] == sorted(positions)
    assert {entry.revision for entry in entries} == {1}
    assert len(entries) == FEEDS * ROUNDS


async def test_whoever_was_replaced_writes_nothing_any_more(tmp_path: Path) -> None:
    async with new_postgres() as location, opened(location, tmp_path / "key") as former:
        feed, _ = await former.feeds.add(NewFeed(url="https://a.example/"), START)
        await former.membership.join(NewNode(name="hub"))
        await commit(former, feed, "of the former")
        async with opened(location, tmp_path / "key") as hub:
            await hub.membership.join(NewNode(name="hub"))

            with pytest.raises(TermEnded):
                await commit(former, feed, "too late")

            await commit(hub, feed, "of the new one")
            records = await hub.log.records(after=Position(0), limit=9)
    assert [each.position for each in records] == [1, 2]


async def test_a_read_waits_for_a_server_that_is_away_unless_somebody_waits_for_it(
    tmp_path: Path,
) -> None:
    async with new_postgres() as location, opened(location, tmp_path / "key") as hub:
        connections = hub._connections
        there = connections._settings
        connections._settings = replace(there, parameters={"host": "/nowhere"})
        await asyncio.to_thread(terminate, location)

        patient = asyncio.create_task(hub.disk_samples())
        READ_PATIENCE.set(0.0)
        with pytest.raises(StorageError, match="could not be read"):
            await hub.disk_samples()
        assert not patient.done()

        connections._settings = there
        assert await patient == []
