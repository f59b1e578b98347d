"""Lists of feeds elsewhere that the hub follows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from storage.records import FeedId, ListWatch, ListWatchId, NewListWatch, WatchedFeed


class ListWatchStore(Protocol):
    """Watched lists, and the feeds on each, identified by resource (see
    `protocols.urls.resource_url`)."""

    async def add(self, new: NewListWatch, now: datetime) -> tuple[ListWatch, bool]:
        """Watch a list, due at once. True: it is new; a list already watched is not
        changed."""
        ...

    async def get(self, watch_id: ListWatchId) -> ListWatch | None: ...

    async def page(self, *, after: ListWatchId, limit: int) -> list[ListWatch]:
        """Watched lists, by id."""
        ...

    async def due(self, now: datetime, limit: int) -> list[ListWatch]:
        """Watched lists that are due, the longest due first."""
        ...

    async def save(self, watch: ListWatch) -> None:
        """Store the result of a read, and when the list is due next. Does nothing if
        the list is no longer watched."""
        ...

    async def remove(self, watch_id: ListWatchId) -> None:
        """Stop watching the list, and forget which feeds are on it; the feeds
        themselves stay. Raises `NotFound`."""
        ...

    async def feeds(
        self, watch_id: ListWatchId, *, after: str, limit: int
    ) -> list[WatchedFeed]:
        """The feeds on a list, in a fixed order; ``after`` is the URL of the last feed
        of the previous page, or ""."""
        ...

    async def put_feeds(
        self, watch_id: ListWatchId, feeds: Sequence[WatchedFeed]
    ) -> None:
        """Add these feeds, or replace what is known of them. Does nothing if the list
        is no longer watched."""
        ...

    async def drop_feeds(self, watch_id: ListWatchId, urls: Sequence[str]) -> None: ...

    async def holders(self, feed_id: FeedId) -> list[tuple[ListWatchId, WatchedFeed]]:
        """The watched lists that contain a feed, by their ids."""
        ...
