"""Listing an account's subscriptions takes as long however many there are."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from storage.records import (
    AccountId,
    Format,
    ListingSearch,
)
from storage.sqlite.listings import page_query, total_query
from tests.support.new_database import open_new
from tests.support.storage_scene import Scene

ACCOUNT = AccountId(7)
FEW, MANY = 2_000, 10_000

BLOCK = 4_096
"""Ids of subscriptions that are counted together."""

CONTAINING = {
    "part of a topic": ListingSearch(topic_contains="ds.example/1500"),
    "part of a callback": ListingSearch(callback_contains="B.example/1500"),
    "pattern of a callback": ListingSearch(callback_like="http://cb.example/1500%"),
    "parts of both": ListingSearch(
        topic_contains="/1500", callback_contains="/1500", format=Format.JSON
    ),
}
INDEXED = {
    "all": ListingSearch(),
    "format": ListingSearch(format=Format.JSON),
    "topic": ListingSearch(topic="http://feeds.example/1500"),
    "topic host": ListingSearch(topic_host="feeds.example"),
    "callback": ListingSearch(callback="http://cb.example/1500"),
    "callback host": ListingSearch(callback_host="cb.example"),
}


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    storage = await open_new(tmp_path / "hub.db")
    try:
        yield Scene(storage)
    finally:
        await storage.close()


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with `MANY` subscriptions, to be read by several tests."""
    path = tmp_path_factory.mktemp("crowd") / "hub.db"

    async def make() -> None:
        storage = await open_new(path)
        await Scene(storage).add_feed()
        await storage.close()

    asyncio.run(make())
    fill(path, 1, MANY)
    return path


def fill(path: Path, first: int, last: int) -> None:
    """Subscriptions of two accounts by turns, each to a topic and callback of its own.

    Written by SQL alone, so that there can be many; the triggers do the rest.
    """
    with closing(sqlite3.connect(path)) as connection, connection:
        numbers = (
            "WITH RECURSIVE n(i) AS (SELECT ? UNION ALL SELECT i + 1 FROM n"
            " WHERE i < ?)"
        )
        connection.execute(
            f"{numbers} INSERT INTO topics (id, url, feed_id)"  # noqa: S608
            " SELECT i, 'http://feeds.example/' || i, 1 FROM n",
            (first, last),
        )
        connection.execute(
            f"{numbers} INSERT INTO subscriptions (account_id, topic_id, feed_id,"  # noqa: S608
            " callback_hash, callback, secret, algorithm, format, updates, batch,"
            " state, from_position, created_at, exhausted, ended_reason)"
            " SELECT 7 + i % 2, i, 1, randomblob(16), 'http://cb.example/' || i, '',"
            " 'sha1', 'json', 'fresh', 0, 'active', 0, 0, 0, '' FROM n",
            (first, last),
        )


def steps(path: Path, query: tuple[str, tuple[object, ...]]) -> int:
    """How many instructions of SQLite's machine a query takes."""
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 1
        return 0

    with closing(sqlite3.connect(path)) as connection:
        connection.execute("SELECT 1 FROM listings LIMIT 1").fetchall()
        connection.set_progress_handler(count, 1)
        connection.execute(*query).fetchall()
    return taken


@pytest.mark.parametrize("name", INDEXED)
async def test_a_page_is_found_by_an_index_alone(
    scene: Scene, tmp_path: Path, name: str
) -> None:
    sql, parameters = page_query(ACCOUNT, INDEXED[name], 0, 20)
    with closing(sqlite3.connect(tmp_path / "hub.db")) as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters).fetchall()
    told = [step[3] for step in plan]
    assert any(step.startswith("SEARCH l USING") for step in told)
    assert [step for step in told if step.startswith("SCAN")] == ["SCAN p"]
    assert not any("MATERIALIZE" in step for step in told)


async def test_a_page_takes_as_long_however_many_there_are(
    scene: Scene, crowd: Path, tmp_path: Path
) -> None:
    await scene.add_feed()
    path = tmp_path / "hub.db"
    fill(path, 1, FEW)
    before = {
        name: (
            steps(path, page_query(ACCOUNT, search, 0, 20)),
            steps(path, total_query(ACCOUNT, ListingSearch(format=search.format))),
        )
        for name, search in INDEXED.items()
    }
    for name, search in INDEXED.items():
        page, total = before[name]
        now = steps(crowd, page_query(ACCOUNT, search, 0, 20))
        assert now <= page * 1.1, name
        counted = total_query(ACCOUNT, ListingSearch(format=search.format))
        assert steps(crowd, counted) <= total + 6 * MANY // BLOCK, name


@pytest.mark.parametrize("name", ["all", "format", "topic host", "callback host"])
def test_a_late_page_skips_no_more_than_a_block(crowd: Path, name: str) -> None:
    search = INDEXED[name]
    first = steps(crowd, page_query(ACCOUNT, search, 0, 20))
    for skip in (MANY // 4, MANY // 2 - 20, MANY // 2 + 20):
        assert steps(crowd, page_query(ACCOUNT, search, skip, 20)) < first + 6 * BLOCK


async def test_late_pages_are_those_that_come_after_the_early_ones(
    scene: Scene, tmp_path: Path
) -> None:
    await scene.add_feed()
    path = tmp_path / "hub.db"
    fill(path, 1, 3 * BLOCK)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM subscriptions WHERE id % 3 = 0 OR id < 100")
        connection.execute(
            "UPDATE subscriptions SET state = 'ended' WHERE id BETWEEN 5000 AND 6000"
        )
        listed = connection.execute(
            "SELECT subscription_id FROM listings WHERE account_id = ?"
            " ORDER BY subscription_id",
            (ACCOUNT,),
        ).fetchall()
        ids = [id for (id,) in listed]
        for search in (ListingSearch(), ListingSearch(topic_host="feeds.example")):
            for skip in (1, 20, 1_000, 1_900, 2_700, len(ids) - 1, len(ids), 10**9):
                sql, parameters = page_query(ACCOUNT, search, skip, 20)
                found = connection.execute(sql, parameters).fetchall()
                assert [row[0] for row in found] == ids[skip : skip + 20], skip
            counted = connection.execute(*total_query(ACCOUNT, search)).fetchone()
            assert counted == (len(ids),)
        connection.execute("DELETE FROM subscriptions")
        left = "SELECT (SELECT count(*) FROM listing_counts), count(*) FROM listings"
        assert connection.execute(left).fetchone() == (0, 0)


@pytest.mark.parametrize("name", CONTAINING)
async def test_parts_of_addresses_are_found_by_their_trigrams(
    scene: Scene, tmp_path: Path, name: str
) -> None:
    await scene.add_feed()
    path = tmp_path / "hub.db"
    fill(path, 1, FEW)
    sql, parameters = page_query(ACCOUNT, CONTAINING[name], 0, 20)
    with closing(sqlite3.connect(path)) as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters).fetchall()
        found = connection.execute(sql, parameters).fetchall()
    assert [row[0] for row in found] == [1500]
    told = [step[3] for step in plan]
    assert any(each.startswith("SCAN x VIRTUAL TABLE INDEX") for each in told)
    assert any(each.startswith("SEARCH l USING INTEGER PRIMARY KEY") for each in told)
    (finding,) = [step[0] for step in plan if step[3] == "CO-ROUTINE p"]
    in_finding = [step[3] for step in plan if step[1] == finding]
    assert not any("TEMP B-TREE" in each for each in in_finding)  # but of the page

    before = steps(path, (sql, parameters))
    fill(path, FEW + 1, MANY // 4)
    assert steps(path, (sql, parameters)) <= before * 2
