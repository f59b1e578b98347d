"""Watched lists of the model."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from protocols.urls import resource_url
from storage.errors import NotFound
from storage.records import FeedId, ListWatch, ListWatchId, NewListWatch, WatchedFeed
from storage.sqlite.feed_access import hash_resource


class MemoryListWatches:
    def __init__(self) -> None:
        self._watches: dict[ListWatchId, ListWatch] = {}
        self._feeds: dict[ListWatchId, dict[str, WatchedFeed]] = {}
        self._last_id = 0

    async def add(self, new: NewListWatch, now: datetime) -> tuple[ListWatch, bool]:
        for known in self._watches.values():
            if known.url == new.url:
                return known, False
        self._last_id += 1
        added = ListWatch(
            id=ListWatchId(self._last_id),
            url=new.url,
            category=new.category,
            private=new.private,
            created_at=now,
            due=now,
        )
        self._watches[added.id], self._feeds[added.id] = added, {}
        return added, True

    async def get(self, watch_id: ListWatchId) -> ListWatch | None:
        return self._watches.get(watch_id)

    async def page(self, *, after: ListWatchId, limit: int) -> list[ListWatch]:
        return [each for each in self._watches.values() if each.id > after][:limit]

    async def due(self, now: datetime, limit: int) -> list[ListWatch]:
        due = [each for each in self._watches.values() if each.due <= now]
        return sorted(due, key=lambda each: (each.due, each.id))[:limit]

    async def save(self, watch: ListWatch) -> None:
        known = self._watches.get(watch.id)
        if known is not None:
            self._watches[watch.id] = replace(
                watch,
                url=known.url,
                category=known.category,
                private=known.private,
                created_at=known.created_at,
            )

    async def remove(self, watch_id: ListWatchId) -> None:
        if self._watches.pop(watch_id, None) is None:
            raise NotFound("watched list", watch_id)
        del self._feeds[watch_id]

    async def feeds(
        self, watch_id: ListWatchId, *, after: str, limit: int
    ) -> list[WatchedFeed]:
        start = hash_resource(after) if after else b""
        found = self._feeds.get(watch_id, {}).values()
        in_order = sorted(found, key=lambda each: hash_resource(each.url))
        return [each for each in in_order if hash_resource(each.url) > start][:limit]

    async def put_feeds(
        self, watch_id: ListWatchId, feeds: Sequence[WatchedFeed]
    ) -> None:
        if watch_id in self._feeds:
            self._feeds[watch_id] |= {resource_url(each.url): each for each in feeds}

    async def drop_feeds(self, watch_id: ListWatchId, urls: Sequence[str]) -> None:
        for url in urls:
            self._feeds.get(watch_id, {}).pop(resource_url(url), None)

    async def holders(self, feed_id: FeedId) -> list[tuple[ListWatchId, WatchedFeed]]:
        found = [
            (watch_id, each)
            for watch_id, feeds in self._feeds.items()
            for each in feeds.values()
            if each.feed_id == feed_id
        ]
        return sorted(found, key=lambda held: (held[0], hash_resource(held[1].url)))
