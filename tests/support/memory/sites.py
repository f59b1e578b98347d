"""Sites of the model."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from storage.records import FeedId, SiteTally, SiteWrite, StoredSitePage
from storage.sqlite.rows import hash_key

from .state import ModelFeed, State


class MemorySites:
    def __init__(self, state: State) -> None:
        self._state = state

    async def state(self, feed_id: FeedId) -> bytes:
        feed = self._state.feeds.get(feed_id)
        return feed.site if feed else b""

    async def known(self, feed_id: FeedId, keys: Sequence[str]) -> list[StoredSitePage]:
        pages = self._pages(feed_id)
        return [pages[key] for key in {*keys} if key in pages]

    async def unlisted(
        self, feed_id: FeedId, walk: int, *, after: str, limit: int
    ) -> list[StoredSitePage]:
        start = hash_key(after) if after else b""
        found = sorted(
            (hash_key(each.key), each)
            for each in self._pages(feed_id).values()
            if each.walk < walk and not each.is_deleted
        )
        return [each for hashed, each in found if hashed > start][:limit]

    async def tally(self, feed_id: FeedId, walk: int) -> SiteTally:
        there = [each for each in self._pages(feed_id).values() if not each.is_deleted]
        return SiteTally(
            pages=len(there), unlisted=sum(each.walk < walk for each in there)
        )

    def _pages(self, feed_id: FeedId) -> dict[str, StoredSitePage]:
        feed = self._state.feeds.get(feed_id)
        return feed.site_pages if feed else {}


def put_site(feed: ModelFeed, site: SiteWrite) -> None:
    feed.site = site.state
    for key in site.listed:
        if key in feed.site_pages:
            feed.site_pages[key] = replace(feed.site_pages[key], walk=site.walk)
    feed.site_pages |= {page.key: page for page in site.pages}
