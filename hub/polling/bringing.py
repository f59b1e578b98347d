"""Content that is brought along instead of being asked for, taken for a fetch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol
from weakref import WeakValueDictionary

from hub.core.fetched import Fetched
from hub.runtime.clock import Clock
from protocols.quick import changed
from storage.records import FeedId, StoredFeed

TAKEN_SECONDS = 20.0
"""How long the content may wait to be committed; a fetch may come first."""
TRIES = 3

Bring = Callable[[str, Fetched], AbstractContextManager[Callable[[], bool]]]
"""Have the next fetch of a URL answered with this; tells whether it was."""


class BringingPoller(Protocol):
    """What is needed of `hub.polling.poller.Poller`."""

    async def fetch_now(self, feed_id: FeedId) -> StoredFeed: ...


class Bringing:
    """One at a time of each feed."""

    def __init__(self, poller: BringingPoller, bring: Bring, clock: Clock) -> None:
        self._poller = poller
        self._bring = bring
        self._clock = clock
        self._locks: WeakValueDictionary[FeedId, asyncio.Lock] = WeakValueDictionary()

    async def take(self, feed: StoredFeed, fetched: Fetched) -> bool:
        """Whether it was committed in time, as what the feed answered then.

        Raises `StorageError`, and `NotFound` if the feed was removed.
        """
        lock = self._locks.setdefault(feed.id, asyncio.Lock())
        try:
            async with asyncio.timeout(TAKEN_SECONDS), lock:
                return await self._commit(feed, fetched)
        except TimeoutError:
            return False

    async def _commit(self, feed: StoredFeed, fetched: Fetched) -> bool:
        """A fetch that was under way may end first: it brings something else."""
        now = self._clock.now()
        fetched = changed(fetched, at=now, started=now)
        with self._bring(fetched.url, fetched) as is_taken:
            for _ in range(TRIES):
                await self._poller.fetch_now(feed.id)
                if is_taken():
                    return True
        return False
