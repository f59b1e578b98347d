"""A log in memory: records and entries are put in by the test, by hand."""

from __future__ import annotations

from collections.abc import Sequence

from protocols.model import Entry, Feed
from storage.packing import pack
from storage.records import (
    Cursor,
    EntryId,
    FeedId,
    FeedTrail,
    Position,
    Record,
    SourceFeed,
    StoredBody,
    StoredEntry,
)


class FakeLog:
    """The reading side of `storage.interface.LogStore`, of what was put in."""

    def __init__(self, *records: Record) -> None:
        self.all = list(records)
        self.states: dict[EntryId, StoredEntry] = {}
        self.head_of_feed: Feed | None = None
        self.latest: StoredBody | None = None
        self.sources: dict[FeedId, SourceFeed] = {}
        self.trimmed = Position(0)
        self.reads = 0
        self.heads_read = 0
        for record in records:
            for ref in record.entries:
                self.put_entry(ref.entry_id, f"Entry {ref.entry_id}")

    def put_entry(
        self, number: int, title: str, *, revision: int = 1, deleted: bool = False
    ) -> None:
        entry_id = EntryId(number)
        entry = Entry(key=f"key-{number}", id=f"id-{number}", title=title)
        self.states[entry_id] = StoredEntry(
            id=entry_id,
            feed_id=FeedId(1),
            key=entry.key,
            revision=revision,
            deleted=deleted,
            body=pack(entry),
        )

    async def head(self) -> Cursor:
        last = self.all[-1].position if self.all else Position(0)
        return Cursor("epoch", last)

    async def records(
        self, *, after: Position, limit: int, feed_id: FeedId | None = None
    ) -> list[Record]:
        self.reads += 1
        found = [each for each in self.all if each.position > after]
        return found[:limit]

    async def trail(self, feed_id: FeedId, through: Position) -> FeedTrail:
        found = [
            each.position
            for each in self.all
            if each.feed_id == feed_id and each.position <= through
        ]
        return FeedTrail(last=max([self.trimmed, *found]), trimmed=self.trimmed)

    async def entries(self, ids: Sequence[EntryId]) -> list[StoredEntry]:
        return [self.states[each] for each in ids if each in self.states]

    async def feed_head(self, feed_id: FeedId) -> bytes | None:
        self.heads_read += 1
        return None if self.head_of_feed is None else pack(self.head_of_feed)

    async def source(
        self, feed_id: FeedId, query: FeedId | None = None
    ) -> SourceFeed | None:
        return self.sources.get(feed_id)

    async def body(self, feed_id: FeedId) -> StoredBody | None:
        return self.latest
