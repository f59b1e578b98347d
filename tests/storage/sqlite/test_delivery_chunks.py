"""Splitting in bounded steps, however many subscriptions do not want a record."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from shutil import copytree

import pytest

from storage.records import FeedId, RecordKind, StoredFeed, Updates
from storage.sqlite import SqliteStorage
from storage.sqlite.delivery_chunks import (
    MOST_OF_ONE_FEED,
    NEXT_AT_REST,
    NEXT_AT_WORK,
    PAGE_SIZE,
    PAGES,
)
from tests.support.new_database import open_new
from tests.support.storage_scene import Scene, all_of


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[SqliteStorage]:
    storage = await open_new(tmp_path / "hub.db")
    yield storage
    await storage.close()


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a database with as many subscriptions that want no updates as
    one claim looks at."""
    directory = tmp_path_factory.mktemp("crowd")

    async def make() -> None:
        storage = await open_new(directory / "hub.db")
        scene = Scene(storage)
        feed = await scene.add_feed()
        for start in range(0, PAGE_SIZE * PAGES, PAGE_SIZE):
            await add_uninterested(scene, feed, range(start, start + PAGE_SIZE))
        await storage.close()

    asyncio.run(make())
    return directory


@pytest.fixture
async def crowded(crowd: Path, tmp_path: Path) -> AsyncIterator[SqliteStorage]:
    """A copy of it for one test."""
    copytree(crowd, tmp_path, dirs_exist_ok=True)
    storage = await open_new(tmp_path / "hub.db")
    yield storage
    await storage.close()


async def add_uninterested(scene: Scene, feed: StoredFeed, names: range) -> None:
    """Subscriptions that want no updates."""
    async with asyncio.TaskGroup() as tasks:
        for name in names:
            tasks.create_task(scene.subscribe(feed, f"{name}", updates=Updates.NONE))


async def is_found(scene: Scene, feed: StoredFeed) -> bool:
    """Whether the only one who wants a record gets it."""
    keen = await scene.subscribe(feed, "keen", updates=Updates.ALL)
    await scene.publish(feed, "k", kind=RecordKind.DELETED)
    (chunk,) = await scene.claim()
    backlog = await scene.storage.backlog()
    return [each.id for _, each in chunk.pending] == [keen.id] and backlog.fanouts == 0


async def test_the_one_who_wants_a_record_is_found_behind_a_page_of_others(
    storage: SqliteStorage,
) -> None:
    scene = Scene(storage)
    feed = await scene.add_feed()
    await add_uninterested(scene, feed, range(PAGE_SIZE))
    assert await is_found(scene, feed)


async def test_the_one_who_wants_a_record_is_found_behind_many_who_do_not(
    crowded: SqliteStorage,
) -> None:
    scene = Scene(crowded)
    feed = await scene.add_feed()
    await add_uninterested(scene, feed, range(PAGE_SIZE * PAGES, PAGE_SIZE * PAGES + 1))
    assert await is_found(scene, feed)


async def test_nobody_wanting_it_ends_the_search(crowded: SqliteStorage) -> None:
    scene = Scene(crowded)
    feed = await scene.add_feed()
    await scene.publish(feed, "k", kind=RecordKind.DELETED)

    assert await scene.claim() == []
    assert (await crowded.backlog()).fanouts == 0


async def test_a_claim_of_nothing_is_empty(storage: SqliteStorage) -> None:
    scene = Scene(storage)
    feed = await scene.add_feed()
    await scene.subscribe(feed)
    await scene.publish(feed)

    assert await scene.claim(limit=0) == []
    assert len(await scene.claim(limit=1)) == 1


async def test_a_large_feed_has_few_chunks_under_way_and_leaves_room_for_others(
    crowded: SqliteStorage,
) -> None:
    scene = Scene(crowded)
    large, small = await scene.add_feed(), await scene.add_feed("small")
    await scene.subscribe(small)
    await scene.publish(large)
    first, *others = await scene.claim(limit=9)
    assert len(others) + 1 == MOST_OF_ONE_FEED

    await scene.publish(small)
    assert await feeds_claimed(scene) == [small.id]
    assert await feeds_claimed(scene) == []
    await scene.flush(outcomes=all_of(first))
    assert await feeds_claimed(scene) == [large.id]


async def test_large_feeds_take_turns_and_one_that_waits_comes_first(
    crowded: SqliteStorage,
) -> None:
    scene = Scene(crowded)
    large, other = await scene.add_feed(), await scene.add_feed("other")
    await asyncio.gather(*(scene.subscribe(other, f"{each}") for each in range(501)))
    await scene.publish(large)
    assert await feeds_claimed(scene, limit=1) == [large.id]
    await scene.publish(other)

    claimed = await feeds_claimed(scene, limit=3)

    assert claimed == [other.id, large.id, other.id]


async def test_what_waits_behind_others_is_not_read_to_find_the_next(
    tmp_path: Path,
) -> None:
    """A claim costs as much while a million records wait."""

    async def steps(name: str, records: int) -> int:
        storage = await open_new(tmp_path / f"{name}.db")
        scene = Scene(storage)
        feed = await scene.add_feed()
        async with asyncio.TaskGroup() as tasks:
            for each in range(501):
                tasks.create_task(scene.subscribe(feed, f"{each}"))
        await asyncio.gather(*(scene.publish(feed) for _ in range(records)))
        await scene.claim(limit=1)
        await storage.close()
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as connection:
            taken = []
            connection.set_progress_handler(lambda: taken.append(1), 1)
            for statement in (NEXT_AT_REST, NEXT_AT_WORK):
                connection.execute(statement).fetchall()
            return len(taken)

    assert await steps("many", 400) == await steps("few", 4)


async def feeds_claimed(scene: Scene, limit: int = 9) -> list[FeedId]:
    return [each.record.feed_id for each in await scene.claim(limit=limit)]
