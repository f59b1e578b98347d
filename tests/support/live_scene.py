"""The reading side of the live stream over a log in memory, without a server.

Tests put records and entries into the log themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from msgspec.structs import replace

from hub.delivery.notifications import Notifications
from hub.live.live_connections import (
    ChannelKey,
    Channels,
    ConnectionOpening,
    LiveConnection,
    LiveSubscription,
)
from hub.live.live_reader import LogReader
from hub.live.message_rendering import MessageRendering
from hub.live.prepared_message import PreparedMessage
from hub.live.replays import LogPages, Replays
from hub.runtime.metrics import Metrics
from protocols.live.live_messages import Closing, NotificationMessage, Reset
from protocols.model import Entry, Feed
from storage.contract import LogStore
from storage.packing import pack
from storage.records import (
    Cursor,
    EntryId,
    FeedId,
    FeedTrail,
    Format,
    Position,
    Record,
    SourceFeed,
    StoredBody,
    StoredEntry,
    Updates,
)
from tests.support.clock import ManualClock
from tests.support.subscriptions import a_record


class FakeLog:
    """The reading side of `storage.contract.LogStore`, over what a test has put in."""

    def __init__(self, *records: Record) -> None:
        self.all = list(records)
        self.states: dict[EntryId, StoredEntry] = {}
        self.head_of_feed: Feed | None = None
        self.latest: StoredBody | None = None
        self.sources: dict[FeedId, SourceFeed] = {}
        self.trimmed = Position(0)
        self.reads = 0
        self.trail_reads = 0
        self.heads_read = 0
        for record in records:
            for ref in record.entries:
                self.put_entry(ref.entry_id, f"Entry {ref.entry_id}")

    def put_entry(
        self, number: int, title: str, *, revision: int = 1, deleted: bool = False
    ) -> None:
        entry_id = EntryId(number)
        entry = Entry(key=f"key-{number}", id=f"id-{number}", title=title)
        self.states[entry_id] = StoredEntry(
            id=entry_id,
            feed_id=FeedId(1),
            key=entry.key,
            revision=revision,
            deleted=deleted,
            body=pack(entry),
        )

    async def end(self) -> Cursor:
        last = self.all[-1].position if self.all else Position(0)
        return Cursor("epoch", last)

    async def records(
        self, *, after: Position, limit: int, feed_id: FeedId | None = None
    ) -> list[Record]:
        self.reads += 1
        found = [each for each in self.all if each.position > after]
        return found[:limit]

    async def trails(self, asked: Sequence[tuple[FeedId, Position]]) -> list[FeedTrail]:
        self.trail_reads += 1
        return [self._trail(*each) for each in asked]

    def _trail(self, feed_id: FeedId, through: Position) -> FeedTrail:
        found = [
            each.position
            for each in self.all
            if each.feed_id == feed_id and each.position <= through
        ]
        return FeedTrail(last=max([self.trimmed, *found]), trimmed=self.trimmed)

    async def entries(self, ids: Sequence[EntryId]) -> list[StoredEntry]:
        return [self.states[each] for each in ids if each in self.states]

    async def feed_head(self, feed_id: FeedId) -> bytes | None:
        self.heads_read += 1
        return None if self.head_of_feed is None else pack(self.head_of_feed)

    async def source(
        self, feed_id: FeedId, query: FeedId | None = None
    ) -> SourceFeed | None:
        return self.sources.get(feed_id)

    async def body(self, feed_id: FeedId) -> StoredBody | None:
        return self.latest


def record_of(feed: int, position: int) -> Record:
    return replace(a_record(position), feed_id=FeedId(feed))


class LiveLog(FakeLog):
    """A `FakeLog` that can hold reads up. ``before_read`` is called before each."""

    before_read: Callable[[], None] = staticmethod(lambda: None)
    _entries_held: asyncio.Event | None = None
    entries_reads = 0
    reading = 0  # entries, at this moment
    most_reading = 0

    def hold_entries(self) -> None:
        """Make reads of entries wait until they are released."""
        self._entries_held = asyncio.Event()

    def release_entries(self) -> None:
        assert self._entries_held is not None
        self._entries_held.set()

    async def entries(self, ids: Sequence[EntryId]) -> list[StoredEntry]:
        self.entries_reads += 1
        self.reading += 1
        self.most_reading = max(self.most_reading, self.reading)
        if self._entries_held is not None:
            await self._entries_held.wait()
        self.reading -= 1
        return await super().entries(ids)

    async def records(
        self, *, after: Position, limit: int, feed_id: FeedId | None = None
    ) -> list[Record]:
        self.before_read()
        found = await super().records(after=after, limit=10**9)
        return [each for each in found if feed_id in (None, each.feed_id)][:limit]

    async def wait(self, after: Position, seconds: float) -> Position:
        if (await self.end()).position <= after:
            await asyncio.Event().wait()
        return after


@dataclass
class RecordingWriter:
    """Records messages, and has room until a test takes it away.

    ``on_write`` is called after each message.
    """

    sent_messages: int = 0
    sent_bytes: int = 0
    waiting: int = 0
    written: list[tuple[str, str]] = field(default_factory=list)
    resets: list[tuple[str, str]] = field(default_factory=list)
    closings: list[Closing] = field(default_factory=list)
    has_room: asyncio.Event = field(default_factory=asyncio.Event)
    on_write: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.has_room.set()

    def write(self, message: PreparedMessage) -> None:
        told = message.message
        assert isinstance(told, NotificationMessage | Reset)
        if isinstance(told, Reset):
            self.resets.append((told.topic, told.cursor))
            return
        self.written.append((told.topic, told.cursor))
        self.on_write()

    async def room(self) -> None:
        await self.has_room.wait()

    def close(self, closing: Closing) -> None:
        self.closings.append(closing)


class LiveScene:
    """A reader at the end of the log, with replays up to there."""

    def __init__(self, *records: Record, patience: float = 30.0) -> None:
        self.log = LiveLog(*records)
        self.writer = RecordingWriter()
        self.channels = Channels()
        log = cast("LogStore", self.log)
        rendering = MessageRendering(
            Notifications(log, "http://hub.example/hub"), "e", ManualClock()
        )
        last = records[-1].position if records else Position(0)
        self.metrics = Metrics()
        self.written = self.metrics.live_messages
        self.reader = LogReader(log, self.channels, rendering, last, self.metrics)
        pages = LogPages(log, self.metrics, ManualClock())
        self.replays = Replays(
            pages, self.reader, self.channels, rendering, self.metrics, patience
        )

    def connect(self, tasks: asyncio.TaskGroup) -> LiveConnection:
        opening = ConnectionOpening(id=1, transport="sse", at=ManualClock().now())
        return LiveConnection(self.writer, self.replays, tasks, opening)

    def subscription(
        self, connection: LiveConnection, feed: int = 1, after: int = 0
    ) -> LiveSubscription:
        """A subscription to the topic ``feed N`` of feed N."""
        key = ChannelKey(
            feed_id=FeedId(feed),
            topic=f"feed {feed}",
            format=Format.JSON,
            updates=Updates.FRESH,
        )
        return LiveSubscription(
            connection, connection.writer, key, Position(after), Position(0)
        )

    @property
    def joined(self) -> set[str]:
        """The topics whose subscriptions get what is published from now on."""
        everything = [record_of(feed, 1) for feed in range(5)]
        return {
            channel.key.topic
            for record in everything
            for channel in self.channels.wanting(record)
        }
