"""Ids of documents in the index of words: a date, and the last bits of an id."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from storage.records import EntryId, Phrase, SearchDocument
from storage.sqlite import open_database
from storage.sqlite.search import ID_BITS
from tests.support.documents import an_entry
from tests.support.storage_scene import START, Scene, fetch


async def test_entries_of_one_moment_whose_ids_look_alike_are_both_found(
    tmp_path: Path,
) -> None:
    ids = []
    for key in ("a", "b"):
        storage = await open_database(tmp_path / "hub.db")
        scene = Scene(storage)
        feed = await scene.add_feed()
        written = an_entry(key, published=START)
        await storage.log.commit(fetch(feed, entries=(written,)))
        place = await storage.entries.place([feed.id], [key])
        assert place is not None
        ids.append(place.id)
        await storage.close()
        skip_ids(tmp_path / "hub.db", to=place.id + (1 << ID_BITS) - 1)

    assert ids[1] - ids[0] == 1 << ID_BITS
    storage = await open_database(tmp_path / "hub.db")
    try:
        for each in ids:
            document = SearchDocument(entry_id=EntryId(each), words="word", places=())
            await storage.search.index([each], [document])
        found = await storage.search.find(Phrase(("word",)), viewer=None, limit=9)
        assert {entry.id for entry in found.entries} == set(ids)
        assert found.next is None
    finally:
        await storage.close()


def skip_ids(path: Path, to: int) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "UPDATE sqlite_sequence SET seq = ? WHERE name = 'entries'", (to,)
        )
