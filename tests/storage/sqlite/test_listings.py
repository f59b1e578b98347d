"""Listing an account's subscriptions takes as long however many there are."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from storage.records import (
    ANONYMOUS,
    OPERATOR,
    AccountId,
    Format,
    ListingSearch,
    NewSubscription,
    SubscriptionId,
)
from storage.sqlite import open_database
from storage.sqlite.listings import page_query, total_query
from tests.support.storage_scene import START, Scene

ACCOUNT = AccountId(7)
FEW, MANY = 2_000, 40_000

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
    storage = await open_database(tmp_path / "hub.db")
    try:
        yield Scene(storage)
    finally:
        await storage.close()


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
    scene: Scene, tmp_path: Path
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
    fill(path, FEW + 1, MANY)
    for name, search in INDEXED.items():
        page, total = before[name]
        now = steps(path, page_query(ACCOUNT, search, 0, 20))
        assert now <= page * 1.1, name
        counted = total_query(ACCOUNT, ListingSearch(format=search.format))
        assert steps(path, counted) == total, name


async def test_what_the_open_hub_has_is_not_listed(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed)
    listing = await scene.storage.listings.page(
        ANONYMOUS, ListingSearch(), skip=0, limit=10
    )
    assert (listing.items, listing.total) == ((), 0)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://A.example", "a.example"),
        ("https://a.example:8080/x", "a.example"),
        ("https://a.example?x=/y", "a.example"),
        ("https://a.example#x", "a.example"),
        ("http://[2001:db8::1]:80/x", "[2001:db8::1]"),
    ],
)
async def test_hosts_are_told_from_what_is_around_them(
    scene: Scene, url: str, host: str
) -> None:
    feed = await scene.add_feed()
    new = NewSubscription(
        account=OPERATOR, topic=url, feed_id=feed.id, callback=f"{url}"
    )
    await scene.storage.subscriptions.add(new, START)
    for search in (ListingSearch(topic_host=host), ListingSearch(callback_host=host)):
        found = await scene.storage.listings.page(OPERATOR, search, skip=0, limit=9)
        assert [each.subscription.topic for each in found.items] == [url]


async def test_totals_follow_what_is_subscribed_changed_and_ended(scene: Scene) -> None:
    feed = await scene.add_feed()
    storage = scene.storage
    new = NewSubscription(
        account=OPERATOR,
        topic="http://a.example/",
        feed_id=feed.id,
        callback="http://cb.example/",
        format=Format.ATOM,
    )

    async def totals() -> tuple[int, ...]:
        searches = (
            ListingSearch(),
            ListingSearch(format=Format.ATOM),
            ListingSearch(format=Format.JSON),
            ListingSearch(topic_host="a.example"),
        )
        found = [
            await storage.listings.page(OPERATOR, each, skip=0, limit=9)
            for each in searches
        ]
        assert all(len(each.items) == each.total for each in found)
        return tuple(each.total for each in found)

    await storage.subscriptions.add(new, START)
    assert await totals() == (1, 1, 0, 1)
    await storage.subscriptions.add(replace(new, format=Format.JSON), START)
    assert await totals() == (1, 0, 1, 1)
    await storage.subscriptions.end(SubscriptionId(1), "enough", START, tell=True)
    assert await totals() == (0, 0, 0, 0)
    await storage.subscriptions.add(new, START)
    assert await totals() == (1, 1, 0, 1)
    await storage.subscriptions.end_all(feed.id, "enough", START, 10)
    assert await totals() == (0, 0, 0, 0)
