"""Sites: sources that are read by many requests, in steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from storage.records import FeedId, SitePage, SiteTally


class SiteStore(Protocol):
    """What is known of a site's pages. Written by `LogStore.commit`, with entries."""

    async def state(self, feed_id: FeedId) -> bytes:
        """As `SiteWrite.state` was last; b"" before the first step."""
        ...

    async def known(self, feed_id: FeedId, keys: Sequence[str]) -> list[SitePage]:
        """Pages with these keys, in any order; unknown ones are left out."""
        ...

    async def unlisted(
        self, feed_id: FeedId, walk: int, *, after: str, limit: int
    ) -> list[SitePage]:
        """Pages that are not deleted and were last listed before a walk.

        In a fixed order; ``after`` is the key of the last one of the page before, or
        "".
        """
        ...

    async def tally(self, feed_id: FeedId, walk: int) -> SiteTally:
        """Without pages that are deleted."""
        ...
