"""Claims that ride on commits: in one transaction, and at nobody's expense."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from storage.contract import Storage
from storage.errors import StorageError
from storage.records import ClaimedChunk, ClaimTerms, RecordKind, Updates
from storage.sqlite import open_database
from storage.sqlite.connection_threads import ConnectionThreads, open_for_writing
from storage.sqlite.delivery_chunks import PAGE_SIZE, PAGES
from tests.support.storage_scene import START, Scene
from tests.support.waiting import eventually

TERMS = ClaimTerms(lease_id=7, seconds=60, now=START, limit=1)


class CountingDisk:
    """Counts what is committed to it."""

    def __init__(self) -> None:
        self.commits = 0

    def open(self, path: Path) -> sqlite3.Connection:
        connection = open_for_writing(path)
        connection.set_trace_callback(self._count)
        return connection

    def _count(self, statement: str) -> None:
        self.commits += statement == "COMMIT"


@pytest.fixture
def disk() -> CountingDisk:
    return CountingDisk()


@pytest.fixture
async def scene(tmp_path: Path, disk: CountingDisk) -> AsyncIterator[Scene]:
    threads = ConnectionThreads(open_for_writing=disk.open)
    storage = await open_database(tmp_path / "hub.db", threads=threads)
    try:
        yield Scene(cast("Storage", storage))
    finally:
        await storage.close()


async def test_a_record_and_the_claim_on_it_are_one_transaction(
    scene: Scene, disk: CountingDisk
) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed)
    given: list[list[ClaimedChunk] | None] = []
    with scene.storage.deliveries.claim_with_commits(lambda: TERMS, given.append):
        before = disk.commits
        await scene.publish(feed)
        await eventually(lambda: bool(given))

    assert disk.commits - before == 1
    assert [len(each or ()) for each in given] == [1]


async def test_a_claim_that_fails_takes_no_commit_with_it(
    scene: Scene, tmp_path: Path
) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed)
    with sqlite3.connect(tmp_path / "hub.db") as connection:
        connection.execute(
            "CREATE TRIGGER no_chunks BEFORE INSERT ON chunks"
            " BEGIN SELECT raise(ABORT, 'no chunks today'); END"
        )
    connection.close()
    given: list[list[ClaimedChunk] | None] = []
    with scene.storage.deliveries.claim_with_commits(lambda: TERMS, given.append):
        position = await scene.publish(feed)
        await eventually(lambda: bool(given))

    assert given == [None]
    assert (await scene.storage.log.end()).position == position
    assert (await scene.storage.backlog()).fanouts == 1


async def test_where_more_is_to_be_looked_through_the_claimer_looks_itself(
    scene: Scene, tmp_path: Path
) -> None:
    """Of more subscribers than one claim looks at, only the last wants updates."""
    feed = await scene.add_feed()
    some = await scene.subscribe(feed, "some", updates=Updates.NONE)
    with sqlite3.connect(tmp_path / "hub.db") as connection:
        copy_subscription(connection, some.id, PAGES * PAGE_SIZE)
    connection.close()
    last = await scene.subscribe(feed, "last", updates=Updates.ALL)
    given: list[list[ClaimedChunk] | None] = []
    with scene.storage.deliveries.claim_with_commits(lambda: TERMS, given.append):
        await scene.publish(feed, kind=RecordKind.UPDATED)
        await eventually(lambda: bool(given))
    (chunk,) = await scene.storage.deliveries.claim_chunks(TERMS)

    assert given == [None]
    assert [subscription.id for _, subscription in chunk.pending] == [last.id]


def copy_subscription(connection: sqlite3.Connection, id: int, times: int) -> None:
    """The same subscription at so many other callbacks."""
    columns = connection.execute("PRAGMA table_info(subscriptions)").fetchall()
    names = ", ".join({name for _, name, *_ in columns} - {"id", "callback_hash"})
    copied = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
        " INSERT INTO subscriptions (callback_hash, NAMES)"
        " SELECT randomblob(32), NAMES FROM subscriptions, n WHERE id = ?"
    )
    connection.execute(copied.replace("NAMES", names), (times, id))


async def test_a_claim_that_cannot_be_read_is_answered_and_its_error_is_heard(
    scene: Scene, tmp_path: Path
) -> None:
    errors: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: errors.append(context["exception"]))
    feed = await scene.add_feed()
    await scene.subscribe(feed)
    with sqlite3.connect(tmp_path / "hub.db") as connection:
        connection.execute("UPDATE subscriptions SET secret = 'of another key'")
    connection.close()
    given: list[list[ClaimedChunk] | None] = []
    with scene.storage.deliveries.claim_with_commits(lambda: TERMS, given.append):
        await scene.publish(feed)
        await eventually(lambda: bool(given))

    assert given == [None]
    assert [type(error) for error in errors] == [StorageError]


async def test_what_is_claimed_after_the_claimer_has_gone_is_given_to_nobody(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed)
    given: list[list[ClaimedChunk] | None] = []
    with scene.storage.deliveries.claim_with_commits(lambda: TERMS, given.append):
        publishing = asyncio.create_task(scene.publish(feed))
        await asyncio.sleep(0)  # handed in
    await publishing
    await scene.storage.close()

    assert given == []
