"""Feeds with whole entries in a real database, for tests of what readers are shown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from hub.publishing.page_visibility import PageUpdater
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
from tests.support.documents import an_entry
from tests.support.storage_scene import START

FAR_APART = (0, 1, 20, 3_600, 86_400, 400 * 86_400, -1_000 * 86_400, -20_000 * 86_400)
"""Seconds between dates: within one stretch of each length, and beyond it."""


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


async def names_by_page(storage: Storage, text: str, limit: int) -> list[list[str]]:
    """The feeds that readers see, by the names they were added under."""
    pages, before = [], None
    while True:
        page = await storage.public.topics(text=text, before=before, limit=limit)
        pages.append([each.url.split(".")[0][8:] for each in page.feeds])
        if (before := page.next) is None:
            return pages


async def publish_far_apart(storage: Storage, keeper: PageUpdater) -> list[str]:
    """The URLs of entries of many dates, several of each, newest first."""
    feeds = PublicFeeds(storage)
    feed = await feeds.add()
    dates = [START + timedelta(seconds=each) for each in FAR_APART]
    entries = [
        an_entry(f"{place}-{number}", published=date)
        for place, date in enumerate(dates)
        for number in range(3)
    ]
    await feeds.publish(feed, *entries)
    await keeper.catch_up()
    listed = await storage.page_list.page(skip=0, limit=1_000)
    return [each.page.url for each in listed]
