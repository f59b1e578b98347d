"""A page of public topics takes as long however many feeds there are, and how few of
them are public."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from storage.contract import Storage
from storage.records import FeedId
from storage.sqlite.publishing import MOST_LOOKED_AT, TOPICS
from tests.support.new_database import open_new
from tests.support.public_feeds import PublicFeeds, names_by_page


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[Storage]:
    storage = await open_new(tmp_path / "hub.db")
    try:
        yield storage
    finally:
        await storage.close()


async def test_what_has_the_letters_but_not_the_text_ends_a_page_early(
    storage: Storage, tmp_path: Path
) -> None:
    await PublicFeeds(storage).add("axbcx")
    await PublicFeeds(storage).add("abc")
    with closing(sqlite3.connect(tmp_path / "hub.db")) as database, database:
        database.execute("PRAGMA trusted_schema = ON")
        database.execute(
            "INSERT INTO feed_texts (rowid, text)"
            " WITH RECURSIVE n (i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n"
            "  WHERE i < 1000 + ?) SELECT i, 'https://abc.' FROM n",
            (MOST_LOOKED_AT,),
        )
    first = await storage.public.topics(text="abc", before=None, limit=9)
    assert (first.feeds, first.next) == ((), FeedId(1001))
    assert await names_by_page(storage, "abc", 9) == [[], ["abc"]]


async def test_a_page_is_read_along_the_index(tmp_path: Path, storage: Storage) -> None:
    with closing(sqlite3.connect(tmp_path / "hub.db")) as database:
        plan = database.execute(
            f"EXPLAIN QUERY PLAN {TOPICS}", {"before": 9, "limit": 9}
        ).fetchall()
    steps = [row[3] for row in plan]
    assert "feeds_public" in steps[0]
    assert not [each for each in steps if "TEMP B-TREE" in each or "SCAN" in each]
