"""Splitting in bounded steps, however many subscriptions do not want a record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.records import RecordKind, StoredFeed, Updates
from storage.sqlite import SqliteStorage
from storage.sqlite.splitting import PAGE_SIZE, PAGES
from tests.support.new_database import open_new
from tests.support.storage_scene import Scene


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[SqliteStorage]:
    storage = await open_new(tmp_path / "hub.db")
    yield storage
    await storage.close()


async def add_uninterested(
    storage: SqliteStorage, feed: StoredFeed, count: int
) -> None:
    """So many subscriptions that want no updates."""
    scene, none = Scene(storage), Updates.NONE
    for start in range(0, count, PAGE_SIZE):
        async with asyncio.TaskGroup() as tasks:
            for number in range(start, min(start + PAGE_SIZE, count)):
                tasks.create_task(scene.subscribe(feed, f"{number}", updates=none))


@pytest.mark.parametrize("count", [PAGE_SIZE, PAGE_SIZE * PAGES + 1])
async def test_the_one_who_wants_a_record_is_found_behind_many_who_do_not(
    storage: SqliteStorage, count: int
) -> None:
    scene = Scene(storage)
    feed = await scene.add_feed()
    await add_uninterested(storage, feed, count)
    keen = await scene.subscribe(feed, "keen", updates=Updates.ALL)
    await scene.publish(feed, "k", kind=RecordKind.DELETED)

    (chunk,) = await scene.claim()

    assert [each.id for _, each in chunk.pending] == [keen.id]
    assert (await storage.backlog()).fanouts == 0


async def test_nobody_wanting_it_ends_the_search(storage: SqliteStorage) -> None:
    scene = Scene(storage)
    feed = await scene.add_feed()
    await add_uninterested(storage, feed, PAGE_SIZE * PAGES)
    await scene.publish(feed, "k", kind=RecordKind.DELETED)

    assert await scene.claim() == []
    assert (await storage.backlog()).fanouts == 0


async def test_a_claim_of_nothing_is_empty(storage: SqliteStorage) -> None:
    scene = Scene(storage)
    feed = await scene.add_feed()
    await scene.subscribe(feed)
    await scene.publish(feed)

    assert await scene.claim(limit=0) == []
    assert len(await scene.claim(limit=1)) == 1
