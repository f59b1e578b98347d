"""How much of what is found is read at once."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from storage.records import Phrase, SearchDocument
from storage.sqlite.search import PAGE_BYTES
from tests.support.documents import an_entry
from tests.support.new_database import open_new
from tests.support.storage_scene import START, Scene, fetch, noise

WORD = Phrase(("word",))


async def test_a_page_of_large_entries_has_few_of_them_and_at_least_one(
    tmp_path: Path,
) -> None:
    sizes = {"small": 10, "large": PAGE_BYTES + 1, "half": PAGE_BYTES // 2, "last": 9}
    storage = await open_new(tmp_path / "hub.db")
    feed = await Scene(storage).add_feed()
    for number, (key, size) in enumerate(sizes.items()):
        published = START - timedelta(days=number)
        written = an_entry(key, title=noise(size), published=published)
        await storage.log.commit(fetch(feed, entries=(written,)))
        place = await storage.entries.place([feed.id], [key])
        assert place is not None
        document = SearchDocument(entry_id=place.id, words="word", places=())
        await storage.search.index([place.id], [document])

    pages, below = [], None
    while not pages or below is not None:
        page = await storage.search.find(WORD, viewer=None, limit=9, below=below)
        pages.append([each.key for each in page.entries])
        below = page.next
    await storage.close()

    assert pages == [["small"], ["large"], ["half", "last"]]
