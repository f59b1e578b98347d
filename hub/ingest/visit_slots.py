"""How many visits there may be at a time: quick ones, slow ones, and those to sites.

Thousands of slow publishers do not hold up the others. Most visits are over within a
second or two; a visit to a publisher that never answers takes ten times that. A visit
begins in a quick slot, of which there are as many as the poller's concurrency. If it is
not over in time it takes a slow slot, and its quick slot is free for the next visit. If
all slow slots are taken, a visit that has no answer yet is broken off, and its feed
waits in line for a slow slot.

A visit to a site takes minutes, so sites may use only a share of all slots: otherwise
no feed would be polled while many sites are read.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from hub.core.fetched import Fetched
from hub.http.exchange import MEBIBYTE
from hub.http.network_errors import TooManyLargeAnswers
from hub.ingest.due_queue import Due
from hub.limits.memory_budget import MemoryBudget
from hub.runtime.caching import BoundedDict
from hub.runtime.metrics import Metrics
from protocols.model import SITE_FORMATS
from protocols.urls import host_name
from storage.records import FeedId, StoredFeed

MOST_FEEDS: Final = 10_000


class SlowFeeds:
    """Feeds whose publishers took long the last time, whatever they answered.

    The latest ``most`` of them since this process began are kept; a feed that is
    answered quickly is forgotten. So this covers publishers that send a document in
    drips as well as those that never answer.
    """

    def __init__(self, most: int = MOST_FEEDS) -> None:
        self._slow: BoundedDict[FeedId, None] = BoundedDict(most)

    def __contains__(self, feed_id: FeedId) -> bool:
        return feed_id in self._slow

    def note(self, feed_id: FeedId, fetched: Fetched) -> None:
        """Note how long it took to wait for the feed's host, and to get the whole
        answer."""
        if (fetched.at - fetched.started).total_seconds() < PATIENCE:
            self._slow.pop(feed_id, None)
        else:
            self._slow[feed_id] = None


SHARE: Final = 4
"""One worker in so many may read a site, and at least one."""


class NoSiteSlot(Exception):
    """A feed has turned out to be a site, and no slot is free to read it now."""


class SiteSlots:
    """Limits how many of ``concurrency`` workers read sites at a time.

    A feed that is not known to be a site needs a slot once it turns out to be one.
    """

    def __init__(self, concurrency: int) -> None:
        self._free = max(1, concurrency // SHARE)
        self._hosts: Counter[str] = Counter()

    def is_read(self, host: str) -> bool:
        """Whether a site of that host is being read, which may take minutes."""
        return host in self._hosts

    @contextmanager
    def hold(self, feed: StoredFeed) -> Iterator[bool]:
        """Yields whether the feed may be visited now; a known site holds its slot
        meanwhile."""
        if feed.format not in SITE_FORMATS:
            yield True
            return
        with self._take() as is_free:
            yield is_free

    @contextmanager
    def read(self, feed: StoredFeed) -> Iterator[None]:
        """Take a slot for the rest of a visit, if the feed was not known to be a site.
        Raises `NoSiteSlot`.

        Without this, a hundred sites that are added at once would take all workers.
        """
        if feed.format in SITE_FORMATS:
            with self._reading(feed):
                yield
            return
        with self._take() as is_free:
            if not is_free:
                raise NoSiteSlot
            with self._reading(feed):
                yield

    @contextmanager
    def _reading(self, feed: StoredFeed) -> Iterator[None]:
        host = host_name(feed.polling.fetch_url or feed.url)
        self._hosts[host] += 1
        try:
            yield
        finally:
            self._hosts[host] -= 1
            self._hosts += Counter()  # drops hosts with a count of zero

    @contextmanager
    def _take(self) -> Iterator[bool]:
        if not self._free:
            yield False
            return
        self._free -= 1
        try:
            yield True
        finally:
            self._free += 1


PATIENCE: Final = 3.0
"""Seconds in a quick slot. A new site's robots.txt and its feed, which are requested a
second apart, both fit into them."""
SLOW_SHARE: Final = 4
"""Slow slots for each quick slot."""
MOST_SLOW: Final = 500
MOST_IN_LINE: Final = 1_000


class TooSlow(Exception):
    """A visit is broken off, or not begun, because all slow slots are taken."""


BYTES_A_SLOT: Final = 5 * MEBIBYTE
"""Bytes of documents for each quick slot, half of which go to a document: no more
memory than if each quick slot alone held the largest document."""
_LEAST_SLOTS: Final = 8
"""There is memory for so many slots even if there are fewer: large documents may
coincide."""


def slow_slots(concurrency: int) -> int:
    """How many slow slots there are; each is a socket, and a document in memory."""
    return min(SLOW_SHARE * concurrency, MOST_SLOW)


class VisitSlots:
    """``concurrency`` quick slots, and `slow_slots` slow ones. The documents of all
    visits share the ``memory``."""

    def __init__(self, concurrency: int, metrics: Metrics | None = None) -> None:
        self._quick = asyncio.Semaphore(concurrency)
        self._slow_left = slow_slots(concurrency)
        self._line: deque[Due] = deque()
        self._counted = (metrics or Metrics()).slow_polls
        self.memory = MemoryBudget(
            max(concurrency, _LEAST_SLOTS) * BYTES_A_SLOT, TooManyLargeAnswers
        )

    @asynccontextmanager
    async def enter(self) -> AsyncIterator[Slot]:
        """Wait for a quick slot."""
        await self._quick.acquire()
        slot = Slot(self)
        try:
            yield slot
        finally:
            slot.leave()

    def line_up(self, due: Due) -> bool:
        """Let a feed wait for a slow slot, still under way; False if the line is
        full."""
        if len(self._line) >= MOST_IN_LINE:
            return False
        self._line.append(due)
        self._counted.add("waiting")
        return True

    def next_in_line(self) -> Due | None:
        """The next feed to visit in a slow slot; None if none waits. Feeds wait only
        while all slow slots are taken, so a visit that leaves one takes the next
        feed."""
        if not self._line:
            return None
        self._counted.add("waiting", -1)
        return self._line.popleft()

    def take_slow(self) -> bool:
        """Take a slow slot in exchange for a quick one; False if none is free."""
        if not self._slow_left:
            return False
        self._slow_left -= 1
        self._counted.add("under_way")
        self._quick.release()
        return True

    def give_back(self, *, is_slow: bool) -> None:
        if is_slow:
            self._slow_left += 1
            self._counted.add("under_way", -1)
        else:
            self._quick.release()


class Slot:
    """A slot held by one visit at a time: quick at first, and slow for good once it is
    slow."""

    def __init__(self, slots: VisitSlots) -> None:
        self._slots = slots
        self._timer: asyncio.TimerHandle | None = None
        self._asking: asyncio.Timeout | None = None
        self.is_slow = False

    def become_slow(self) -> bool:
        """Exchange the slot for a slow one; False if all slow slots are taken."""
        self.is_slow = self.is_slow or self._slots.take_slow()
        return self.is_slow

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        """Surrounds the first request of a visit, which may be broken off because
        nothing came of it yet: then raises `TooSlow`. Later requests of the visit are
        completed."""
        if self.is_slow:
            yield
            return
        self._watch()
        self._asking = asking = asyncio.timeout(None)
        try:
            async with asking:
                yield
        except TimeoutError:
            if asking.expired():
                raise TooSlow from None
            raise
        finally:
            self._asking = None

    def leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._slots.give_back(is_slow=self.is_slow)

    def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(PATIENCE, self._run_out)

    def _run_out(self) -> None:
        if self.become_slow():
            return
        if self._asking is not None:
            self._asking.reschedule(asyncio.get_running_loop().time())
        else:
            self._watch()
