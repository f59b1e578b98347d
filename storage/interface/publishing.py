"""What everybody may see."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from storage.records import EntryId, FeedId, ListedEntry, PublicFeed


class PublicStore(Protocol):
    """Feeds that are neither private nor removed, and what they hold.

    Whether an entry or a whole feed is unlisted stands in its packed body.
    """

    async def feeds(self, *, after: FeedId, limit: int) -> list[PublicFeed]:
        """By id."""
        ...

    async def feed(self, feed_id: FeedId) -> PublicFeed | None: ...

    async def entries(
        self, feed_id: FeedId, *, before: tuple[datetime, EntryId] | None, limit: int
    ) -> list[ListedEntry]:
        """Entries of one feed, newest first, those withdrawn left out.

        ``before``: only those that follow this place of the list; it need not be that
        of an entry any more.
        """
        ...
