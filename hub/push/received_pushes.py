"""Pushes of other hubs, accepted and processed within bounds.

They are answered before they are processed, because hubs do not wait long, and after a
note is stored that the feed has news. If a push is lost in a crash or cannot be stored,
the feed itself is polled. So storing a push removes only its own note, and only if
nothing that came before it is left.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
import structlog

from hub.core.fetched import Fetched
from hub.ingest.prefetched_responses import PushedContent
from hub.runtime.caching import BoundedDict
from hub.runtime.clock import Clock
from hub.websub.ping_queue import PingQueue
from protocols.identity import checksum
from storage.contract import Storage
from storage.errors import NotFound, StorageError
from storage.records import (
    FeedId,
    FeedPush,
    FeedState,
    PollReason,
    PushCallback,
    StoredFeed,
)

if TYPE_CHECKING:
    from hub.runtime.telemetry import Traces

MOST_BYTES = 64 * 1024 * 1024
"""Bytes of bodies that are being read, wait, or are being processed."""
MOST_WAITING = 1_000
MOST_OF_FEED = 20
AT_ONCE = 8
PAGE = 500
REMEMBERED = 10_000
RETRY_SECONDS = (2.0, 5.0, 10.0, 15.0, 15.0, 15.0)
"""Seconds between the tries to store a push while nothing can be stored."""
HINT_SECONDS = 60.0
"""Seconds between two looks for feeds that have news but could not be asked at once."""

log = structlog.get_logger()


class ReceivedPush(msgspec.Struct, frozen=True, kw_only=True):
    """A push with a valid signature; an empty body says only that there is news."""

    callback: PushCallback
    at: datetime  # when it came
    body: bytes = b""
    content_type: str = ""


class BodyReservation:
    """Bytes of one body that are held while it is read."""

    def __init__(self, deliveries: ReceivedPushes) -> None:
        self._deliveries = deliveries
        self._bytes = 0

    def take(self, count: int) -> bool:
        """Hold so many more bytes; False if there is no room for them."""
        if not self._deliveries.has_room(count):
            return False
        self._bytes += count
        self._deliveries.held += count
        return True

    def end(self) -> None:
        self._deliveries.held -= self._bytes
        self._bytes = 0


class ReceivedPushes:
    def __init__(
        self,
        storage: Storage,
        content: PushedContent,
        pings: PingQueue,
        clock: Clock,
        pauses: Sequence[float] = RETRY_SECONDS,
        traces: Traces | None = None,
    ) -> None:
        self._traces = traces
        self._pauses = pauses
        self._feeds = storage.feeds
        self._pushes = storage.pushes
        self._content = content
        self._pings = pings
        self._clock = clock
        self._waiting: deque[ReceivedPush] = deque()
        self._of_feed: dict[FeedId, deque[ReceivedPush]] = {}  # as they came
        self._unstored: dict[FeedId, datetime] = {}
        """Feeds of which a push was given up, so that the feed itself must be asked,
        and when the last such push came."""
        self._last: BoundedDict[FeedId, bytes] = BoundedDict(REMEMBERED)
        self._arrived = asyncio.Event()
        self.held = 0

    def has_room(self, count: int) -> bool:
        return self.held + count <= MOST_BYTES

    @contextmanager
    def reading(self) -> Iterator[BodyReservation]:
        reading = BodyReservation(self)
        try:
            yield reading
        finally:
            reading.end()

    def is_known(self, delivery: ReceivedPush) -> bool:
        """Whether the same body was pushed just before, and need not be processed
        again."""
        last = self._last.get(delivery.callback.feed_id)
        return bool(delivery.body) and last == checksum(delivery.body)

    def has_place(self, delivery: ReceivedPush) -> bool:
        """Whether a push can be queued; False if too many wait, in all or of this
        feed."""
        is_full = len(self._waiting) >= MOST_WAITING
        of_feed = len(self._of_feed.get(delivery.callback.feed_id, ()))
        return (
            not is_full and of_feed < MOST_OF_FEED and self.has_room(len(delivery.body))
        )

    def put(self, delivery: ReceivedPush) -> None:
        """Take a push into the queue, if it `has_place`."""
        if self._traces:
            self._traces.note_cause(delivery.callback.feed_id)
        self._of_feed.setdefault(delivery.callback.feed_id, deque()).append(delivery)
        self.held += len(delivery.body)
        self._waiting.append(delivery)
        self._arrived.set()

    async def run(self) -> None:
        """Process pushes until cancelled, first those left over from before a
        restart."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep_asking(), name="push-hints")
            for number in range(AT_ONCE):
                tasks.create_task(self._work(), name=f"push-{number}")

    async def _work(self) -> None:
        while True:
            while not self._waiting:
                self._arrived.clear()
                await self._arrived.wait()
            await self._finish(self._waiting.popleft())

    async def _finish(self, delivery: ReceivedPush) -> None:
        """Process one push; however that ends, others go on."""
        feed_id = delivery.callback.feed_id
        try:
            await self._take_in_time(delivery)
        except NotFound:
            log.info("push_of_removed_feed", feed=feed_id)
        except StorageError as error:
            self._unstored[feed_id] = delivery.at
            log.warning("push_not_taken", feed=feed_id, error=str(error))
        except Exception:
            self._unstored[feed_id] = delivery.at
            log.exception("push_broke", feed=feed_id)
        finally:
            self.held -= len(delivery.body)
            self._of_feed[feed_id].remove(delivery)
            if not self._of_feed[feed_id]:
                del self._of_feed[feed_id]

    async def _take_in_time(self, delivery: ReceivedPush) -> None:
        """Process a push, and again for a while if it cannot be stored. Raises
        `StorageError`."""
        for pause in self._pauses:
            try:
                await self.take(delivery)
                return
            except NotFound:
                raise
            except StorageError:
                await asyncio.sleep(pause)
        await self.take(delivery)

    async def take(self, delivery: ReceivedPush) -> None:
        """Commit a push as an answer of the feed itself; if that fails the feed is
        asked soon.

        Raises `StorageError`.
        """
        feed = await self._feeds.get(delivery.callback.feed_id)
        if feed is None or feed.state is not FeedState.ACTIVE:
            return
        if delivery.body and await self._bring(feed, delivery):
            self._last[feed.id] = checksum(delivery.body)
            return
        self._unstored[feed.id] = delivery.at
        self._pings.add(feed, PollReason.WOKEN_BY_PUSH)

    def _heeds_until(self, delivery: ReceivedPush) -> datetime | None:
        feed_id = delivery.callback.feed_id
        is_first = next(iter(self._of_feed.get(feed_id, ())), delivery) is delivery
        return delivery.at if is_first and feed_id not in self._unstored else None

    async def _keep_asking(self) -> None:
        """Ask feeds for their news: after a start, and while their servers want
        patience or nothing of them could be stored."""
        is_first = True
        while True:
            try:
                await self._ask_for_hinted(is_first=is_first)
                is_first = False
            except StorageError as error:
                log.warning("hints_not_read", error=str(error))
            await asyncio.sleep(HINT_SECONDS)

    async def _ask_for_hinted(self, *, is_first: bool) -> None:
        last, known, hinted = FeedId(0), dict(self._unstored), set[FeedId]()
        while page := await self._pushes.hinted(after=last, limit=PAGE):
            for feed_push in await self._pushes.of(page):
                await self._ask(feed_push, is_first=is_first)
            hinted.update(known.keys() & page)
            last = page[-1]
        for feed_id in known.keys() - hinted:
            if self._unstored[feed_id] == known[feed_id]:  # no more came meanwhile
                del self._unstored[feed_id]

    async def _ask(self, feed_push: FeedPush, *, is_first: bool) -> None:
        """Ask a feed once about its hint: if its server fails, it is polled as planned.
        A feed whose push still waits here is not asked."""
        feed = await self._feeds.get(feed_push.feed_id)
        if feed is None or feed.state is not FeedState.ACTIVE:
            return
        hinted_at, asked_at = feed_push.push.hinted_at, feed.polling.last_fetch
        if hinted_at is None or (feed.id in self._of_feed and not is_first):
            return
        is_asked = asked_at is not None and asked_at >= hinted_at
        is_to_come = hinted_at > self._clock.now()  # only if the clock was set back
        if is_first or not (is_asked or is_to_come):
            self._pings.add(feed, PollReason.WOKEN_BY_PUSH)

    async def _bring(self, feed: StoredFeed, delivery: ReceivedPush) -> bool:
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
            heeds_until=self._heeds_until(delivery),
        )
        return await self._content.take(feed, fetched)
