"""The index of words, kept up to date by a reader of the log.

A commit writes nothing of it. Its lag is bounded by its speed: it takes everything that
came meanwhile together, so that much news costs little more than some.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

import structlog

from hub.core.news.search_terms import document_of, searched_subject
from hub.runtime.log_follower import LogFollower
from hub.runtime.offloading import run_in_thread
from protocols.model import Entry, Feed
from storage.contract import EntryStore, LogStore, SearchStore
from storage.packing import unpack, unpack_head
from storage.records import (
    EntryId,
    EntrySource,
    FeedId,
    Position,
    Record,
    SearchDocument,
    StoredEntry,
    StoredFeed,
)

PAGE = 200
"""Entries that are read and written together."""
RECORDS = 200
GATHER_SECONDS = 0.25
"""How long news waits for more, to be written with it; longer while much comes."""

log = structlog.get_logger()


class Indexed(Protocol):
    """What is needed of `storage.contract.Storage`."""

    @property
    def log(self) -> LogStore: ...
    @property
    def entries(self) -> EntryStore: ...
    @property
    def search(self) -> SearchStore: ...


class SearchIndex:
    """`run` is its background part."""

    def __init__(
        self,
        storage: Indexed,
        *,
        gather_seconds: float = GATHER_SECONDS,
    ) -> None:
        self._storage = storage
        self._gather_seconds = gather_seconds

    async def run(self) -> None:
        follower = LogFollower(
            self._storage.log,
            "search_indexing_failed",
            self.catch_up,
            gather_seconds=self._gather_seconds,
        )
        await follower.run()

    async def catch_up(self) -> Position:
        """Index all there is now; up to where the log was read."""
        while waiting := await self._storage.search.waiting(PAGE):
            await self._index(waiting)
        position = await self._storage.search.position()
        while records := await self._read(position):
            position = records[-1].position
            await self._index_records(records)
        return position

    async def _read(self, position: Position) -> list[Record]:
        return await self._storage.log.records(after=position, limit=RECORDS)

    async def _index_records(self, records: Sequence[Record]) -> None:
        """In pages; where reading goes on is written with the last of them."""
        named = [ref.entry_id for each in records for ref in each.entries]
        *pages, last = _pages(list(dict.fromkeys(named)))
        for page in pages:
            await self._index(page)
        await self._index(last, records[-1].position)

    async def _index(
        self, ids: Sequence[EntryId], position: Position | None = None
    ) -> None:
        stored = await self._storage.log.entries(ids)
        feeds = list(dict.fromkeys(each.feed_id for each in stored))
        sources = {
            each.feed.id: each for each in await self._storage.entries.sources(feeds)
        }
        documents = await run_in_thread(partial(_documents, stored, sources))
        await self._storage.search.index(ids, documents, position)


def _pages(ids: list[EntryId]) -> Iterator[list[EntryId]]:
    """At least one, which may be empty."""
    for start in range(0, max(len(ids), 1), PAGE):
        yield ids[start : start + PAGE]


def _documents(
    stored: Sequence[StoredEntry], sources: Mapping[FeedId, EntrySource]
) -> list[SearchDocument]:
    heads = {feed_id: unpack_head(source.head) for feed_id, source in sources.items()}
    documents = []
    for each in stored:
        if each.deleted or each.feed_id not in sources:
            continue
        feed = sources[each.feed_id].feed
        try:
            documents.append(_document(each, heads[each.feed_id], feed))
        except Exception:  # one that nobody can find must not keep all after it so
            log.exception("entry_not_indexed", entry=each.id)
    return documents


def _document(stored: StoredEntry, head: Feed, feed: StoredFeed) -> SearchDocument:
    subject = searched_subject(unpack(stored.body, Entry), head, feed)
    return document_of(stored.id, subject)
