"""The front page: what a stranger may know of this hub."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import hub
from hub.runtime.clock import Clock
from protocols.model import Feed
from storage.contract import Storage
from storage.packing import unpack
from storage.records import FeedId, FeedState, StoredFeed

FRESH_SECONDS = 5.0
"""The database is asked no more often than this, however many visitors there are."""
SHOWN_FEEDS = 50
READ_FEEDS = 1_000
"""So many feeds are looked at to find public ones."""
PAGE = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontPage:
    """``feeds``: some that are public, the earliest added first."""

    url: str
    version: str
    feeds: tuple[StoredFeed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutPage:
    """What publishers are told of who asks for their feeds."""

    url: str
    version: str
    user_agent: str
    contact: str = ""
    heeds_robots: bool = False


class FrontPageService:
    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        public_url: str,
        contact: str = "",
        *,
        heeds_robots: bool = False,
    ) -> None:
        self.about = AboutPage(
            url=public_url,
            version=hub.__version__,
            user_agent=f"Fanfare/{hub.__version__}",
            contact=contact,
            heeds_robots=heeds_robots,
        )
        self._feeds = storage.feeds
        self._public = storage.public
        self._clock = clock
        self._public_url = public_url
        self._read_at = float("-inf")
        self._shown: tuple[StoredFeed, ...] = ()

    async def show(self) -> FrontPage:
        """Raises `StorageError`."""
        now = self._clock.monotonic()
        if now - self._read_at >= FRESH_SECONDS:
            self._shown = tuple(await self._read())
            self._read_at = now
        return FrontPage(
            url=self._public_url, version=hub.__version__, feeds=self._shown
        )

    async def _read(self) -> Sequence[StoredFeed]:
        found: list[StoredFeed] = []
        after = FeedId(0)
        for _ in range(READ_FEEDS // PAGE):
            page = await self._feeds.page(
                after=after, limit=PAGE, state=FeedState.ACTIVE
            )
            for feed in page:
                if len(found) < SHOWN_FEEDS and await self._is_listed(feed):
                    found.append(feed)
            if len(found) >= SHOWN_FEEDS or len(page) < PAGE:
                break
            after = page[-1].id
        return found

    async def _is_listed(self, feed: StoredFeed) -> bool:
        """Neither private nor kept out of lists by its publisher."""
        if feed.private:
            return False
        public = await self._public.feed(feed.id)
        return public is not None and not (
            public.head is not None and unpack(public.head, Feed).unlisted
        )
