"""Feeds with whole entries in a real database, for tests of what readers are shown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from protocols.model import Deletion, Entry, Feed, Status
from storage.contract import Storage
from storage.records import (
    FetchCommit,
    NewFeed,
    Polling,
    RecordKind,
    RecordWrite,
    StoredFeed,
)
from tests.support.storage_scene import START


@dataclass(frozen=True, slots=True)
class PublicFeeds:
    storage: Storage

    async def add(
        self, name: str = "a", *, head: Feed | None = None, **more: Any
    ) -> StoredFeed:
        new = NewFeed(url=f"https://{name}.example/feed", **more)
        feed, _ = await self.storage.feeds.add(new, START)
        await self._commit(feed, head=head or Feed(title=f"Feed {name}"))
        return feed

    async def read(self, feed: StoredFeed, head: Feed) -> None:
        """Commit a reading of the feed's document, with this head."""
        await self._commit(feed, head=head, title=head.title)

    async def publish(
        self, feed: StoredFeed, *entries: Entry, when: datetime = START
    ) -> None:
        """Commit new entries, or new revisions of known ones."""
        await self._commit(
            feed,
            when,
            entries=entries,
            records=(
                RecordWrite(
                    kind=RecordKind.ENTRIES,
                    status=Status(code=200),
                    entries=tuple((each.key, True) for each in entries),
                ),
            ),
        )

    async def withdraw(
        self, feed: StoredFeed, *keys: str, when: datetime = START
    ) -> None:
        await self._commit(
            feed,
            when,
            deletions=tuple(Deletion(key=key, id=key) for key in keys),
            records=(
                RecordWrite(
                    kind=RecordKind.DELETED,
                    status=Status(code=200),
                    entries=tuple((key, True) for key in keys),
                ),
            ),
        )

    async def _commit(
        self, feed: StoredFeed, when: datetime = START, **more: Any
    ) -> None:
        done = await self.storage.log.commit(
            FetchCommit(
                feed_id=feed.id,
                at=when,
                next_fetch=when,
                polling=Polling(code=200, last_fetch=when, last_parse=when),
                **{"title": feed.title or None, **more},
            )
        )
        assert done is not None
