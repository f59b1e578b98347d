"""Ids of documents in the index of words: their seconds, sixteen to each."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from protocols.model import Entry
from storage.records import EntryId, Phrase, SearchDocument
from storage.sqlite import SqliteStorage
from storage.sqlite.search import SLOT_BITS
from tests.support.documents import an_entry
from tests.support.new_database import open_new
from tests.support.storage_scene import START, Scene, fetch

SLOTS = 1 << SLOT_BITS


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[SqliteStorage]:
    storage = await open_new(tmp_path / "hub.db")
    yield storage
    await storage.close()


async def index(
    storage: SqliteStorage, entries: Sequence[Entry], *, page: int
) -> list[EntryId]:
    """Commit and index them, so many at once; their ids, in their order."""
    feed = await Scene(storage).add_feed()
    await storage.log.commit(fetch(feed, entries=tuple(entries)))
    places = [await storage.entries.place([feed.id], [each.key]) for each in entries]
    ids = [place.id for place in places if place]
    for start in range(0, len(ids), page):
        documents = [
            SearchDocument(entry_id=each, words="word", places=())
            for each in ids[start : start + page]
        ]
        await storage.search.index(ids[start : start + page], documents)
    return ids


async def found(storage: SqliteStorage) -> list[EntryId]:
    matches = await storage.search.find(Phrase(("word",)), viewer=None, limit=999)
    return [each.id for each in matches.entries]


@pytest.mark.parametrize("page", [1, 7, 200])
async def test_more_entries_of_a_second_than_it_has_ids_stay_in_their_order(
    storage: SqliteStorage, page: int
) -> None:
    entries = [an_entry(f"{n}", published=START) for n in range(3 * SLOTS + 5)]
    ids = await index(storage, entries, page=page)
    assert await found(storage) == ids


async def test_entries_of_other_seconds_are_as_new_as_their_dates(
    storage: SqliteStorage,
) -> None:
    dates = [START - timedelta(seconds=50 - n % 50) for n in range(400)]
    entries = [an_entry(f"{n}", published=date) for n, date in enumerate(dates)]
    ids = await index(storage, entries, page=33)
    newest_first = sorted(range(400), key=lambda n: (-(n % 50), n))
    assert await found(storage) == [ids[n] for n in newest_first]


@pytest.mark.parametrize("year", [1, 1969, 1970])
async def test_entries_of_long_ago_are_found_and_are_the_oldest(
    storage: SqliteStorage, year: int
) -> None:
    date = datetime(year, 1, 1, tzinfo=UTC)
    old = [an_entry(f"{n}", published=date) for n in range(2 * SLOTS)]
    new = an_entry("new", published=START)
    *ids, last = await index(storage, [*old, new], page=9)
    assert await found(storage) == [last, *ids]


async def test_an_id_that_came_free_is_taken_again(
    storage: SqliteStorage, tmp_path: Path
) -> None:
    entries = [an_entry(f"{n}", published=START) for n in range(40)]
    ids = await index(storage, entries, page=40)
    before = taken(tmp_path / "hub.db")
    document = SearchDocument(entry_id=ids[-1], words="word", places=())
    await storage.search.index([ids[-1]], [document])
    assert taken(tmp_path / "hub.db") == before
    assert await found(storage) == ids


def taken(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT docid FROM searched ORDER BY docid")
        return [docid for (docid,) in rows]
