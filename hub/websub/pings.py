"""Publish pings: topics whose publisher says that there is news, fetched at once.

Equal pings that wait are one. A ping that comes while its topic is being fetched brings
another fetch, since the news may have come after the answer.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

import structlog

from storage.errors import StorageError
from storage.records import FeedId, StoredFeed

MOST_WAITING = 10_000
AT_ONCE = 128

log = structlog.get_logger()


class PingedPoller(Protocol):
    """What is needed of `hub.polling.poller.Poller`, which paces pings by host."""

    async def fetch_now(self, feed_id: FeedId) -> StoredFeed: ...

    def is_under_way(self, feed_id: FeedId) -> bool: ...


class Pings:
    def __init__(self, poller: PingedPoller) -> None:
        self._poller = poller
        self._queue: asyncio.Queue[FeedId] = asyncio.Queue(MOST_WAITING)
        self._waiting: set[FeedId] = set()

    def add(self, feed_id: FeedId) -> bool:
        """Fetch the feed soon; False if too many wait."""
        if self.is_waiting(feed_id):
            return True
        try:
            self._queue.put_nowait(feed_id)
        except asyncio.QueueFull:
            return False
        self._waiting.add(feed_id)
        return True

    def is_waiting(self, feed_id: FeedId) -> bool:
        return feed_id in self._waiting

    async def run(self) -> None:
        """Answer pings until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(AT_ONCE):
                group.create_task(self._work(), name=f"pings-{number}")

    async def _work(self) -> None:
        while True:
            feed_id = await self._queue.get()
            self._waiting.discard(feed_id)
            try:
                if self._poller.is_under_way(feed_id):
                    await self._poller.fetch_now(feed_id)
                await self._poller.fetch_now(feed_id)
            except StorageError as error:
                log.warning("ping_failed", feed=feed_id, error=str(error))
