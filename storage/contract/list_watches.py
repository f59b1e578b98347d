"""Lists of feeds elsewhere that the hub keeps in step with."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from storage.records import FeedId, ListWatch, ListWatchId, NewListWatch, WatchedFeed


class ListWatchStore(Protocol):
    """Watched lists, and the feeds of each by their resource (see
    `protocols.urls.resource_url`)."""

    async def add(self, new: NewListWatch, now: datetime) -> tuple[ListWatch, bool]:
        """Watch a list, due at once. True: it is new; a known one stays as it is."""
        ...

    async def get(self, watch_id: ListWatchId) -> ListWatch | None: ...

    async def page(self, *, after: ListWatchId, limit: int) -> list[ListWatch]:
        """Watched lists, by id."""
        ...

    async def due(self, now: datetime, limit: int) -> list[ListWatch]:
        """The longest due first."""
        ...

    async def save(self, watch: ListWatch) -> None:
        """What came of it, and when it is due. Nothing if it is watched no more."""
        ...

    async def remove(self, watch_id: ListWatchId) -> None:
        """Watch it no more, and forget its feeds, which stay. Raises `NotFound`."""
        ...

    async def feeds(
        self, watch_id: ListWatchId, *, after: str, limit: int
    ) -> list[WatchedFeed]:
        """In a fixed order; ``after`` is the URL of the last one of the page before, or
        "" ."""
        ...

    async def put_feeds(
        self, watch_id: ListWatchId, feeds: Sequence[WatchedFeed]
    ) -> None:
        """Add these, or replace what is known of them. Nothing if the list is not
        watched any more."""
        ...

    async def drop_feeds(self, watch_id: ListWatchId, urls: Sequence[str]) -> None: ...

    async def holders(self, feed_id: FeedId) -> list[tuple[ListWatchId, WatchedFeed]]:
        """The watched lists that have a feed, by their ids."""
        ...
