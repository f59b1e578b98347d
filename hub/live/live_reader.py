"""The one reader of the log for all live connections."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from hub.live.live_connections import Channel, Channels, LiveSubscription
from hub.live.message_rendering import MessageRendering
from hub.live.prepared_message import PreparedMessage
from hub.runtime.log_follower import LogFollower
from hub.runtime.metrics import Metrics
from protocols.cursor import turn_of
from storage.contract import LogStore
from storage.records import BEFORE_ALL, FeedId, Position, Record

PAGE = 200
SLICE = 500
"""Connections that are written to before other tasks have their turn."""

KEPT_RECENT = 4_000
"""Records; about half a minute of a busy hub."""


class RecentRecords:
    """The last records that were given, for subscriptions that lack only these.

    On a busy hub a subscription that is caught up from the database alone would never
    be up to date: more records come with each read. ``most`` bounds the number of
    records plus the number of entries that they name.
    """

    def __init__(self, after: Position, *, most: int = KEPT_RECENT) -> None:
        self._after = after
        self._most = most
        self._size = 0
        self._all: deque[Record] = deque()
        self._of_feeds: dict[FeedId, deque[Record]] = {}

    def add(self, record: Record) -> None:
        self._all.append(record)
        self._of_feeds.setdefault(record.feed_id, deque()).append(record)
        self._size += 1 + len(record.entries)
        while self._size > self._most:
            self._forget_first()

    def has_all_after(self, position: Position) -> bool:
        return position >= self._after

    def after(self, position: Position, feed_id: FeedId) -> tuple[Record, ...]:
        """The feed's records that come after the position, in order."""
        found = deque[Record]()
        for record in reversed(self._of_feeds.get(feed_id, ())):
            if record.position <= position:
                break
            found.appendleft(record)
        return tuple(found)

    def _forget_first(self) -> None:
        first = self._all.popleft()
        self._after = first.position
        self._size -= 1 + len(first.entries)
        of_feed = self._of_feeds[first.feed_id]
        of_feed.popleft()
        if not of_feed:
            del self._of_feeds[first.feed_id]


class LogReader:
    """Reads the log for all live connections; `run` reads on from ``position`` for
    ever.

    Everything up to ``position`` was given, or is just being given, to the
    subscriptions that had joined; a subscription that joins now gets what comes after
    it. ``recent`` holds the last records up to there.
    """

    def __init__(
        self,
        log_store: LogStore,
        channels: Channels,
        rendering: MessageRendering,
        position: Position,
        metrics: Metrics,
    ) -> None:
        self.position = metrics.live_position = position
        self.recent = RecentRecords(position)
        self._remembers = False
        self.giving = asyncio.Lock()
        """Held while a record is given to connections."""
        self._log = log_store
        self._channels = channels
        self._rendering = rendering
        self._metrics = metrics

    async def run(self) -> None:
        await LogFollower(self._log, "live_reading_failed", self._read_on).run()

    async def _read_on(self) -> Position:
        if not self._remembers:
            await self._remember()
        for record in await self._log.records(after=self.position, limit=PAGE):
            await self._give(record)
        return self.position

    async def _remember(self) -> None:
        """Read the last records before the start, for clients that come back after a
        restart: they are all a little behind the end of the log."""
        after = Position(max(BEFORE_ALL, self.position - KEPT_RECENT))
        recent = RecentRecords(after)
        while after < self.position:
            page = await self._log.records(after=after, limit=PAGE)
            for record in page:
                if record.position <= self.position:
                    recent.add(record)
            after = page[-1].position if len(page) == PAGE else self.position
        self.recent, self._remembers = recent, True

    async def _give(self, record: Record) -> None:
        async with self.giving:
            messages = await self._messages(record)
            # There was no pause since all channels were seen to have their message:
            # from here on a subscription that joins has this record behind it.
            self.pass_by(record)
            given = [
                (message, list(channel.members))
                for channel, message in sorted(messages.items(), key=_turn)
                if message is not None
            ]
            for channel, message in messages.items():
                channel.last = channel.last if message is None else record.position
            for message, members in given:
                for start in range(0, len(members), SLICE):
                    some = members[start : start + SLICE]
                    sent = _send(message, some, record.position)
                    self._metrics.live_messages.add("pushed", sent)
                    if len(members) > SLICE:
                        await asyncio.sleep(0)

    def pass_by(self, record: Record) -> None:
        """Note that a record is the last one that was given."""
        self.position = self._metrics.live_position = record.position
        self.recent.add(record)

    async def _messages(self, record: Record) -> dict[Channel, PreparedMessage | None]:
        """The message for every channel that wants the record, including channels that
        appear meanwhile."""
        messages: dict[Channel, PreparedMessage | None] = {}
        while missing := [
            channel
            for channel in self._channels.wanting(record)
            if channel not in messages
        ]:
            for channel in missing:
                messages[channel] = await self._rendering.message(
                    record, channel.key, channel.last
                )
        return messages


def _send(
    message: PreparedMessage, members: Sequence[LiveSubscription], position: Position
) -> int:
    """Write a message to members that do not have it yet; returns how many."""
    sent = 0
    for member in members:
        # Like `LiveSubscription.send`, inlined because a call for each would cost too
        # much.
        if position > member.position:
            member.position = position
            member.writer.write(message.in_turn if member.has_followers else message)
            sent += 1
    return sent


def _turn(message: tuple[Channel, PreparedMessage | None]) -> str:
    return turn_of(message[0].key.topic)
