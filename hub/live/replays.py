"""Replaying the log to clients that resume, until they can join the live reader.

The position where a subscription begins is looked up first. Then records are read in
short pages, shared by all that ask for the same page: when thousands of clients come
back at once, most ask for the same few pages, and a page is the same for everybody
until the log grows.

A subscription that has everything up to the reader's position joins its channel without
a pause in between. So no record is lost between replay and live stream, and none comes
twice: the reader skips a subscription that is already above a record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from heapq import merge
from itertools import islice
from typing import Final, Generic, TypeVar

import msgspec
import structlog

from hub.live.live_connections import (
    Channels,
    Group,
    Interest,
    LiveConnection,
    LiveSubscription,
)
from hub.live.live_reader import LogReader
from hub.live.message_rendering import MessageRendering
from hub.live.prepared_message import PreparedMessage
from hub.runtime.caching import KeyedLock, SizedCache
from hub.runtime.clock import Clock
from hub.runtime.metrics import Metrics
from protocols.cursor import read_cursor_of
from protocols.live.live_messages import FAILED, SLOW, Reset
from storage.contract import LogStore
from storage.errors import StorageError
from storage.records import BEFORE_ALL, Cursor, FeedId, FeedTrail, Position, Record

PAGE: Final = 50
READS_AT_ONCE: Final = 8
"""Pages and trails read at the same time, over all connections: deliveries of new
records read from the same database, and must not wait behind many replays."""
KEPT_TRAILS: Final = 4_096
KEPT_SIZE: Final = 10_000
"""How much the kept pages hold: records plus the entries that they name."""
KEPT_SECONDS: Final = 60.0
"""Seconds for which a page or trail is kept after its last use; by then all clients
that come back at once have done so."""

MOST_GATHERED: Final = 500
"""Keys read in one go."""

_Place = tuple[FeedId, Position]
_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class LogPage(msgspec.Struct, frozen=True, kw_only=True):
    """Records of a feed after a position, `PAGE` at most.

    The feed has no other records up to ``end``, except those that were trimmed, which
    are at or below ``trimmed``.
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
    """Reads that many callers ask for one by one, done in one go for all that wait.

    A caller that comes during a read waits for the next one, with all others that came
    meanwhile: so its value is read after it asked. A read that fails or is cancelled is
    repeated for the callers that still wait.
    """

    def __init__(
        self, read: Callable[[Sequence[_Key]], Awaitable[Sequence[_Value]]]
    ) -> None:
        """``read``: returns the values of keys, in the order of the keys."""
        self._read = read
        self._wanted: dict[_Key, asyncio.Future[_Value]] = {}
        self._reading = asyncio.Lock()

    async def get(self, key: _Key) -> _Value:
        """The value of a key. Raises whatever ``read`` raises."""
        found = self._wanted.get(key)
        if found is None:
            found = self._wanted[key] = asyncio.get_running_loop().create_future()
        async with self._reading:
            if not found.done():
                await self._read_wanted(key, found)
        return found.result()

    async def _read_wanted(self, key: _Key, found: asyncio.Future[_Value]) -> None:
        """Read the key, and up to `MOST_GATHERED` keys that others ask for."""
        await asyncio.sleep(0)  # gathers callers of this turn of the loop
        wanted = {key: found}
        for other in islice(self._wanted, MOST_GATHERED):
            wanted.setdefault(other, self._wanted[other])
        for each in wanted:
            self._wanted.pop(each, None)
        values = await self._read(list(wanted))
        for future, value in zip(wanted.values(), values, strict=True):
            future.set_result(value)


class LogPages:
    """Pages and trails of the log, read and kept. Methods raise `StorageError`."""

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
        self._kept: SizedCache[_Place, LogPage] = SizedCache(
            clock, most=kept_size, seconds=KEPT_SECONDS
        )
        self._trails: SizedCache[_Place, FeedTrail] = SizedCache(
            clock, most=kept_trails, seconds=KEPT_SECONDS
        )
        self._reading = asyncio.Semaphore(READS_AT_ONCE)

    async def after(
        self, position: Position, feed_id: FeedId, end: Position
    ) -> LogPage:
        """The feed's records after a position: all of those up to ``end``, or a full
        page."""
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
        """A feed's trail, possibly from before records were trimmed; pages tell of
        those."""
        place = feed_id, through
        trail = self._trails.find(place)
        if trail is None:
            trail = await self._trail_reads.get(place)
            self._trails.keep(place, trail)
        self._reads.add("memory")
        return trail

    async def trimmed(self, feed_id: FeedId) -> Position:
        """The position up to which the feed's records are trimmed by now."""
        return (await self._trail_reads.get((feed_id, BEFORE_ALL))).trimmed

    async def _read_trails(self, places: Sequence[_Place]) -> Sequence[FeedTrail]:
        self._reads.add("database")
        async with self._reading:
            return await self._log.trails(places)

    async def _read(
        self, position: Position, feed_id: FeedId, end: Position
    ) -> LogPage:
        self._reads.add("database")
        async with self._reading:
            records = await self._log.records(
                after=position, limit=PAGE, feed_id=feed_id
            )
            # It is read after the records, so that earlier trimming is seen.
            (trail,) = await self._log.trails([(feed_id, position)])
        return LogPage(
            records=tuple(records),
            end=records[-1].position if len(records) == PAGE else end,
            trimmed=trail.trimmed,
        )

    def _find(self, place: _Place, end: Position) -> LogPage | None:
        page = self._kept.find(place)
        if page is None or not (page.is_full or page.end >= end):
            return None
        self._reads.add("memory")
        return page


class ResumePoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where in the log a subscription begins.

    ``position``: records after it are sent. ``last``: the topic's last record up to
    there, 0 if there is none. ``cursor`` is the same for all subscriptions that begin
    together and asked for the same. ``is_reset``: records that it asked for are gone.
    """

    cursor: str
    position: Position
    last: Position
    is_reset: bool


async def find_resume_points(
    pages: LogPages, interests: Sequence[Interest], head: Cursor
) -> list[ResumePoint]:
    """The resume points of subscriptions that begin together. Raises `InvalidValue`."""
    return [await _find_beginning(pages, each, head) for each in interests]


async def _find_beginning(
    pages: LogPages, interest: Interest, head: Cursor
) -> ResumePoint:
    """The resume point of a subscription. It is a reset if records of its feed were
    trimmed, or if the cursor belongs to another log (another epoch, or beyond the end).
    In the latter case the subscription begins at the end."""
    cursor, position, is_unknown = str(head), head.position, False
    if interest.cursor is not None:
        epoch, number = read_cursor_of(interest.key.topic, interest.cursor)
        is_unknown = epoch != head.epoch or number > head.position
        if not is_unknown:
            cursor, position = interest.cursor, Position(number)
    trail = await pages.trail(interest.key.feed_id, position)
    return ResumePoint(
        cursor=cursor,
        position=position,
        last=trail.last,
        is_reset=is_unknown or trail.trimmed > position,
    )


PATIENCE = 30.0
"""Seconds for which a client that is being caught up may take nothing."""

RENDERED_AT_ONCE = 8
"""Records rendered at the same time for clients that resume, over all connections."""

log = structlog.get_logger()

_Found = tuple[Position, int, Record, LiveSubscription]


class Replays:
    def __init__(
        self,
        pages: LogPages,
        reader: LogReader,
        channels: Channels,
        rendering: MessageRendering,
        metrics: Metrics,
        patience: float = PATIENCE,
    ) -> None:
        self._pages = pages
        self._reader = reader
        self._channels = channels
        self._rendering = rendering
        self._metrics = metrics
        self._patience = patience
        self._places = asyncio.Semaphore(RENDERED_AT_ONCE)

    def is_current(self, group: Group) -> bool:
        """Let the group join if there is nothing to replay; returns whether it has."""
        staying = [each for each in group if not each.has_left]
        if any(self._has_missed_something(each) for each in staying):
            return False
        for each in staying:
            each.position = max(each.position, self._reader.position)
            self._channels.join(each)
        return True

    def _has_missed_something(self, subscription: LiveSubscription) -> bool:
        position, recent = subscription.position, self._reader.recent
        if position >= self._reader.position:
            return False
        if not recent.has_all_after(position):
            return True
        return bool(recent.after(position, subscription.key.feed_id))

    async def replay(self, connection: LiveConnection, group: Group) -> None:
        """Send a group the records that it lacks, in the log's order, and let it
        join."""
        self._metrics.live_resuming.value += 1
        try:
            while not self.is_current(group):
                await self._send_page(connection, group)
        except StorageError as error:
            log.warning("replay_failed", error=str(error))
            connection.writer.close(FAILED)
        except TimeoutError:
            connection.writer.close(SLOW)
        finally:
            self._metrics.live_resuming.value -= 1

    async def _send_page(self, connection: LiveConnection, group: Group) -> None:
        """Send the next records to the group, up to the end of the shortest page."""
        found: list[list[_Found]] = []
        end = self._reader.position
        for number, each in enumerate(group):
            if each.has_left:
                continue
            page = await self._page(each)
            end = min(end, page.end)
            if page.trimmed > max(each.position, each.last):
                self._tell_missed(each, page.trimmed)
            found.append([(it.position, number, it, each) for it in page.records])
        for position, _number, record, subscription in merge(*found):
            if position > end:
                break
            await self._send(connection, subscription, record)
            subscription.position = max(subscription.position, position)
        for each in group:
            each.position = max(each.position, end)

    async def _page(self, subscription: LiveSubscription) -> LogPage:
        """The records that a subscription lacks up to the reader's position, or the
        first of them."""
        position, feed_id = subscription.position, subscription.key.feed_id
        recent, end = self._reader.recent, self._reader.position
        if not recent.has_all_after(position):
            return await self._pages.after(position, feed_id, end)
        found = recent.after(position, feed_id)
        return LogPage(records=found, end=end, trimmed=BEFORE_ALL)

    async def _send(
        self, connection: LiveConnection, subscription: LiveSubscription, record: Record
    ) -> None:
        key = subscription.key
        if subscription.has_left or not key.wants(record):
            return
        if record.position <= subscription.last:  # it was reported as trimmed
            return
        async with self._places:  # or the reader waits behind all replays
            message = await self._rendering.message(record, key, subscription.last)
        if message is None:
            trimmed = await self._pages.trimmed(key.feed_id)
            if trimmed >= record.position:
                self._tell_missed(subscription, trimmed)
            return
        async with asyncio.timeout(self._patience):
            await connection.writer.room()
        if not subscription.has_left:
            if subscription.send(message, record.position):
                self._metrics.live_messages.add("replayed")
            subscription.last = record.position

    def _tell_missed(self, subscription: LiveSubscription, last: Position) -> None:
        """Tell a subscription that records up to ``last`` were trimmed before it got
        them."""
        if not subscription.has_left:
            cursor = self._rendering.cursor(subscription.position)
            reset = Reset(topic=subscription.key.topic, cursor=cursor)
            subscription.writer.write(PreparedMessage(reset))
            subscription.last = last
