"""Reads of the log for those who resume, shared by all who ask for the same.

When thousands come back at once most of them ask for the same few pages. Whoever asks
for what is just being read waits for it, and what was read is kept a while: a page is
the same for everybody until the log goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Generic, TypeVar

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

MOST_GATHERED: Final = 500
"""Read in one go."""

_Place = tuple[FeedId, Position]
_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


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


class GatheredReads(Generic[_Key, _Value]):
    """Reads that many ask for one by one, done for all who wait in one go.

    Whoever asks while others are read waits for the next go, with all who did: nobody
    is given what was begun to be read before he asked. Who fails or is cancelled
    leaves it to the next one to read.
    """

    def __init__(
        self, read: Callable[[Sequence[_Key]], Awaitable[Sequence[_Value]]]
    ) -> None:
        """``read``: the values of keys, in their order."""
        self._read = read
        self._asked: dict[_Key, asyncio.Future[_Value]] = {}
        self._reading = asyncio.Lock()

    async def get(self, key: _Key) -> _Value:
        """Raises what ``read`` does."""
        found = self._asked.get(key)
        if found is None:
            found = self._asked[key] = asyncio.get_running_loop().create_future()
        async with self._reading:
            if not found.done():
                await self._read_asked(key, found)
        return found.result()

    async def _read_asked(self, key: _Key, found: asyncio.Future[_Value]) -> None:
        """What others ask for, too, up to `MOST_GATHERED`."""
        await asyncio.sleep(0)  # those who ask in this turn of the loop
        asked = {key: found}
        for other in islice(self._asked, MOST_GATHERED):
            asked.setdefault(other, self._asked[other])
        for each in asked:
            self._asked.pop(each, None)
        values = await self._read(list(asked))
        for future, value in zip(asked.values(), values, strict=True):
            future.set_result(value)


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
        self._trail_reads = GatheredReads(self._read_trails)
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
        trail = self._trails.find(place)
        if trail is None:
            trail = await self._trail_reads.get(place)
            self._trails.keep(place, trail)
        self._reads.add("memory")
        return trail

    async def trimmed(self, feed_id: FeedId) -> Position:
        """Up to where its records have gone from the log, by now."""
        return (await self._trail_reads.get((feed_id, BEFORE_ALL))).trimmed

    async def _read_trails(self, places: Sequence[_Place]) -> Sequence[FeedTrail]:
        self._reads.add("database")
        async with self._reading:
            return await self._log.trails(places)

    async def _read(self, position: Position, feed_id: FeedId, end: Position) -> Page:
        self._reads.add("database")
        async with self._reading:
            records = await self._log.records(
                after=position, limit=PAGE, feed_id=feed_id
            )
            # Read after the records: what was trimmed before that is seen.
            (trail,) = await self._log.trails([(feed_id, position)])
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
