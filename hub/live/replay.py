"""Replaying the log to those who resume, in short pages, until they may join.

One that has everything up to where the reader stands joins its channel without a pause
in between, so no record can fall between replay and live, and none comes twice: the
reader passes by who stands above a record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from heapq import merge

import structlog

from hub.live.connections import Connection, Group
from hub.live.pages import Page, Pages
from hub.live.prepared import Prepared
from hub.live.reader import LogReader
from hub.live.rendering import Rendering
from hub.live.subscriptions import Channels, LiveSubscription
from hub.runtime.metrics import Metrics
from protocols.live.live_messages import FAILED, SLOW, Reset
from storage.errors import StorageError
from storage.records import BEFORE_ALL, Position, Record

PATIENCE = 30.0
"""Seconds a client that is being caught up may take nothing."""

AT_ONCE = 8
"""Records rendered at the same time for those who resume, over all connections."""

log = structlog.get_logger()

_Found = tuple[Position, int, Record, LiveSubscription]


class Replays:
    def __init__(
        self,
        pages: Pages,
        reader: LogReader,
        channels: Channels,
        rendering: Rendering,
        metrics: Metrics,
        patience: float = PATIENCE,
    ) -> None:
        self._pages = pages
        self._reader = reader
        self._channels = channels
        self._rendering = rendering
        self._metrics = metrics
        self._patience = patience
        self._places = asyncio.Semaphore(AT_ONCE)

    def is_current(self, group: Group) -> bool:
        """Whether they have joined, because there is nothing to replay."""
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

    async def replay(self, connection: Connection, group: Group) -> None:
        """Send a group what it has not got, in the log's order, and let it join."""
        self._metrics.live_resuming.value += 1
        try:
            while not self.is_current(group):
                await self._send_page(connection, group)
        except StorageError as error:
            log.warning("replay_failed", error=str(error))
            connection.outlet.close(FAILED)
        except TimeoutError:
            connection.outlet.close(SLOW)
        finally:
            self._metrics.live_resuming.value -= 1

    async def _send_page(self, connection: Connection, group: Group) -> None:
        """The next records of all, as far as the shortest page of one goes."""
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
        for position, _number, record, subscription in _until(end, merge(*found)):
            await self._send(connection, subscription, record)
            subscription.position = max(subscription.position, position)
        for each in group:
            each.position = max(each.position, end)

    async def _page(self, subscription: LiveSubscription) -> Page:
        """What it lacks up to where the reader stands now, or the first of it."""
        position, feed_id = subscription.position, subscription.key.feed_id
        recent, end = self._reader.recent, self._reader.position
        if not recent.has_all_after(position):
            return await self._pages.after(position, feed_id, end)
        found = recent.after(position, feed_id)
        return Page(records=found, end=end, trimmed=BEFORE_ALL)

    async def _send(
        self, connection: Connection, subscription: LiveSubscription, record: Record
    ) -> None:
        key = subscription.key
        if subscription.has_left or not key.wants(record):
            return
        if record.position <= subscription.last:  # it was told that this one has gone
            return
        async with self._places:  # or the reader would wait behind all who resume
            message = await self._rendering.message(record, key, subscription.last)
        if message is None:
            trimmed = await self._pages.trimmed(key.feed_id)
            if trimmed >= record.position:
                self._tell_missed(subscription, trimmed)
            return
        async with asyncio.timeout(self._patience):
            await connection.outlet.room()
        if not subscription.has_left:
            if subscription.send(message, record.position):
                self._metrics.live_messages.add("replayed")
            subscription.last = record.position

    def _tell_missed(self, subscription: LiveSubscription, last: Position) -> None:
        """Records were trimmed before it got there, the last of them this one."""
        if not subscription.has_left:
            cursor = self._rendering.cursor(subscription.position)
            reset = Reset(topic=subscription.key.topic, cursor=cursor)
            subscription.outlet.write(Prepared(reset))
            subscription.last = last


def _until(end: Position, found: Iterable[_Found]) -> Iterable[_Found]:
    return (each for each in found if each[0] <= end)
