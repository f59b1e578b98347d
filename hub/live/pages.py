"""Reads of the log for those who resume, shared by all who ask for the same.

When thousands come back at once most of them ask for the same few pages. Whoever asks
for what is just being read waits for it, and what was read is kept a while: a page is
the same for everybody until the log goes on.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from hub.runtime.caching import KeyedLock, SizedCache
from hub.runtime.clock import Clock
from hub.runtime.metrics import Metrics
from storage.contract import LogStore
from storage.records import BEFORE_ALL, FeedId, FeedTrail, Position, Record

PAGE: Final = 50
AT_ONCE: Final = 8
"""Pages and trails read at the same time, over all connections: whoever delivers what
is new reads from the same database, and must not wait behind a crowd."""
KEPT_TRAILS: Final = 4_096
KEPT_SIZE: Final = 10_000
"""Of kept pages: records, and entries that they name, taken together."""
KEPT_SECONDS: Final = 60.0
"""After a page or trail was asked for last; a crowd has come back within that."""

_Place = tuple[FeedId, Position]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Records of a feed after a position, `PAGE` at most.

    There are no others of it up to ``end``, but perhaps some were trimmed: those up to
    ``trimmed``.
    """

    records: tuple[Record, ...]
    end: Position
    trimmed: Position

    @property
    def is_full(self) -> bool:
        return len(self.records) == PAGE

    @property
    def size(self) -> int:
        return 1 + sum(1 + len(each.entries) for each in self.records)


class Pages:
    """Methods raise `StorageError`."""

    def __init__(
        self,
        log: LogStore,
        metrics: Metrics,
        clock: Clock,
        *,
        kept_trails: int = KEPT_TRAILS,
        kept_size: int = KEPT_SIZE,
    ) -> None:
        self._log = log
        self._reads = metrics.live_reads
        self._locks: KeyedLock[_Place] = KeyedLock()
        self._trail_locks: KeyedLock[_Place] = KeyedLock()
        self._kept: SizedCache[_Place, Page] = SizedCache(
            clock, most=kept_size, seconds=KEPT_SECONDS
        )
        self._trails: SizedCache[_Place, FeedTrail] = SizedCache(
            clock, most=kept_trails, seconds=KEPT_SECONDS
        )
        self._reading = asyncio.Semaphore(AT_ONCE)

    async def after(self, position: Position, feed_id: FeedId, end: Position) -> Page:
        """The records that follow, of those up to ``end`` at least all."""
        place = feed_id, position
        if (kept := self._find(place, end)) is not None:
            return kept
        async with self._locks.of(place):
            if (kept := self._find(place, end)) is not None:
                return kept
            page = await self._read(position, feed_id, end)
            self._kept.keep(place, page, page.size)
            return page

    async def trail(self, feed_id: FeedId, through: Position) -> FeedTrail:
        """Perhaps as it was before records were trimmed; pages tell of those."""
        place = feed_id, through
        async with self._trail_locks.of(place):
            trail = self._trails.find(place)
            if trail is not None:
                self._reads.add("memory")
                return trail
            self._reads.add("database")
            async with self._reading:
                trail = await self._log.trail(feed_id, through)
            self._trails.keep(place, trail)
            return trail

    async def trimmed(self, feed_id: FeedId) -> Position:
        """Up to where its records have gone from the log, by now."""
        self._reads.add("database")
        return (await self._log.trail(feed_id, BEFORE_ALL)).trimmed

    async def _read(self, position: Position, feed_id: FeedId, end: Position) -> Page:
        self._reads.add("database")
        async with self._reading:
            records = await self._log.records(
                after=position, limit=PAGE, feed_id=feed_id
            )
            # Read after the records: what was trimmed before that is seen.
            trail = await self._log.trail(feed_id, position)
        return Page(
            records=tuple(records),
            end=records[-1].position if len(records) == PAGE else end,
            trimmed=trail.trimmed,
        )

    def _find(self, place: _Place, end: Position) -> Page | None:
        page = self._kept.find(place)
        if page is None or not (page.is_full or page.end >= end):
            return None
        self._reads.add("memory")
        return page
