"""The log is trimmed in transactions that are short, whatever its records name."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from storage.records import FeedState, Retention
from storage.sqlite import open_database
from storage.sqlite.columns import to_milliseconds
from storage.sqlite.purging import ROWS_PURGED, purge_removed_feed
from storage.sqlite.trimming import MOST_TRIMMED_ENTRIES
from tests.support.storage_scene import START, Scene

RETENTION = Retention(soft_age=60, soft_count=10**6, hard_age=60, hard_count=10**6)
LATER = START + timedelta(hours=1)


@pytest.mark.parametrize(
    ("entries", "records"),
    [(1, [10]), (MOST_TRIMMED_ENTRIES // 3, [3, 3, 3, 1]), (1_001, [1] * 10)],
)
async def test_records_of_many_entries_go_fewer_at_a_time(
    tmp_path: Path, entries: int, records: list[int]
) -> None:
    storage = await open_database(tmp_path / "hub.db")
    scene = Scene(storage)
    feed = await scene.add_feed()
    for number in range(10):
        await scene.publish(feed, *(f"{number}/{each}" for each in range(entries)))
    trimmed = []
    while count := await storage.log.trim(RETENTION, LATER, 250):
        trimmed.append(count)
    await storage.close()
    assert trimmed == records


async def test_a_feed_of_many_entries_is_purged_in_short_transactions(
    tmp_path: Path,
) -> None:
    path = tmp_path / "hub.db"
    storage = await open_database(path)
    scene = Scene(storage)
    gone, kept = await scene.add_feed("gone"), await scene.add_feed("kept")
    for feed in (gone, kept):
        for number in range(5):
            await scene.publish(feed, *(f"{number}/{each}" for each in range(50)))
    await storage.feeds.set_state(gone.id, FeedState.REMOVED, START)
    await storage.close()

    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        counts, is_gone = [count(connection)], False
        while not is_gone:
            before = to_milliseconds(LATER)
            is_gone = purge_removed_feed(before, gone.id, 100, connection)
            counts.append(count(connection))

    assert counts == [510, 410, 310, 255]
    storage = await open_database(path)
    assert await storage.feeds.get(gone.id) is None
    assert len(await storage.log.latest_entries(kept.id, 999)) == 250
    await storage.close()


def count(connection: sqlite3.Connection) -> int:
    """Entries and records."""
    ((entries, records),) = connection.execute(
        "SELECT (SELECT count(*) FROM entries), (SELECT count(*) FROM records)"
    ).fetchall()
    return int(entries + records)


async def test_a_feed_that_comes_back_while_it_is_purged_stays(tmp_path: Path) -> None:
    storage = await open_database(tmp_path / "hub.db")
    scene = Scene(storage)
    feed = await scene.add_feed("gone")
    await scene.publish(feed, *map(str, range(3 * ROWS_PURGED)))
    await storage.feeds.set_state(feed.id, FeedState.REMOVED, START)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(storage.feeds.purge_removed(LATER, 9))
        await asyncio.sleep(0)
        tasks.create_task(storage.feeds.set_state(feed.id, FeedState.ACTIVE, LATER))

    assert await storage.feeds.get(feed.id) is not None
    await storage.close()
