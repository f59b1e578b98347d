"""What hubs of others push, taken in and worked off in bounds.

The answer comes before the work, for hubs do not wait long, and after a note that the
feed has news: of what waits here when the hub dies, the feed itself is asked.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from hub.clock import Clock
from hub.core.fetched import Fetched
from hub.polling.bringing import Bringing
from hub.websub.pings import Pings
from protocols.checksum import checksum
from storage.errors import NotFound, StorageError
from storage.interface import Storage
from storage.records import FeedId, FeedState, PushCallback, StoredFeed

MOST_BYTES = 64 * 1024 * 1024
"""Of bodies that are being read, wait, or are worked on."""
MOST_WAITING = 1_000
MOST_OF_FEED = 20
AT_ONCE = 8
PAGE = 500
REMEMBERED = 10_000

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A push whose signature was right; an empty body says only that there is news."""

    callback: PushCallback
    body: bytes = b""
    content_type: str = ""


class Reading:
    """Bytes of one body that are held while it is read."""

    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries
        self._bytes = 0

    def take(self, count: int) -> bool:
        """False: there is no room for so many more."""
        if not self._deliveries.has_room(count):
            return False
        self._bytes += count
        self._deliveries.held += count
        return True

    def end(self) -> None:
        self._deliveries.held -= self._bytes
        self._bytes = 0


class Deliveries:
    def __init__(
        self, storage: Storage, bringing: Bringing, pings: Pings, clock: Clock
    ) -> None:
        self._feeds = storage.feeds
        self._pushes = storage.pushes
        self._bringing = bringing
        self._pings = pings
        self._clock = clock
        self._waiting: deque[Delivery] = deque()
        self._of_feed: Counter[FeedId] = Counter()
        self._last: dict[FeedId, bytes] = {}
        self._arrived = asyncio.Event()
        self.held = 0

    def has_room(self, count: int) -> bool:
        return self.held + count <= MOST_BYTES

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        reading = Reading(self)
        try:
            yield reading
        finally:
            reading.end()

    def is_known(self, delivery: Delivery) -> bool:
        """Whether it was just pushed, and needs no second look."""
        last = self._last.get(delivery.callback.feed_id)
        return bool(delivery.body) and last == checksum(delivery.body)

    def has_place(self, delivery: Delivery) -> bool:
        """False: too many wait, of all or of this feed."""
        is_full = len(self._waiting) >= MOST_WAITING
        of_feed = self._of_feed[delivery.callback.feed_id]
        return (
            not is_full and of_feed < MOST_OF_FEED and self.has_room(len(delivery.body))
        )

    def put(self, delivery: Delivery) -> None:
        """Where it `has_place`."""
        self._of_feed[delivery.callback.feed_id] += 1
        self.held += len(delivery.body)
        self._waiting.append(delivery)
        self._arrived.set()

    async def run(self) -> None:
        """Work until cancelled, first on what an end of the hub left undone."""
        await self._ask_for_hinted()
        async with asyncio.TaskGroup() as tasks:
            for number in range(AT_ONCE):
                tasks.create_task(self._work(), name=f"upstream-{number}")

    async def _work(self) -> None:
        while True:
            while not self._waiting:
                self._arrived.clear()
                await self._arrived.wait()
            await self._finish(self._waiting.popleft())

    async def _finish(self, delivery: Delivery) -> None:
        """It harms no other, however it ends."""
        feed_id = delivery.callback.feed_id
        try:
            await self.take(delivery)
        except (NotFound, StorageError) as error:
            log.warning("push_not_taken", feed=feed_id, error=str(error))
        except Exception:
            log.exception("push_broke", feed=feed_id)
        finally:
            self.held -= len(delivery.body)
            self._of_feed[feed_id] -= 1
            if not self._of_feed[feed_id]:
                del self._of_feed[feed_id]

    async def take(self, delivery: Delivery) -> None:
        """As an answer of the feed itself; or else the feed is asked, soon.

        Raises `StorageError`.
        """
        feed = await self._feeds.get(delivery.callback.feed_id)
        if feed is None or feed.state is not FeedState.ACTIVE:
            return
        if delivery.body and await self._bring(feed, delivery):
            self._remember(feed.id, delivery.body)
            return
        self._pings.add(feed)

    async def _ask_for_hinted(self) -> None:
        last = FeedId(0)
        try:
            while page := await self._pushes.hinted(after=last, limit=PAGE):
                for last in page:
                    feed = await self._feeds.get(last)
                    if feed is not None and feed.state is FeedState.ACTIVE:
                        self._pings.add(feed)
        except StorageError as error:
            log.warning("hints_not_read", error=str(error))

    async def _bring(self, feed: StoredFeed, delivery: Delivery) -> bool:
        now = self._clock.now()
        fetched = Fetched(
            at=now,
            started=now,
            url=feed.polling.fetch_url or feed.url,
            status=200,
            body=delivery.body,
            content_type=delivery.content_type,
            is_partial=True,
            is_pushed=True,
        )
        return await self._bringing.take(feed, fetched)

    def _remember(self, feed_id: FeedId, body: bytes) -> None:
        self._last.pop(feed_id, None)
        self._last[feed_id] = checksum(body)
        if len(self._last) > REMEMBERED:
            del self._last[next(iter(self._last))]
