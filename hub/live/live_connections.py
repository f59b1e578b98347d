"""Live connections: their transports, their subscriptions, and their holders.

A subscription that begins in the past is replayed from the log, and joins its channel
(all subscriptions that get the same messages) when it has caught up. Topics of a
connection are replayed together, in the order of the log.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter, defaultdict
from collections.abc import Coroutine, Iterator, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import Protocol

import msgspec

from hub.live.connection_quotas import Holder
from hub.live.prepared_message import PreparedMessage
from protocols.cursor import turn_of
from protocols.live.live_messages import Closing, MessageId
from storage.records import (
    BEFORE_ALL,
    NOBODY,
    AccountId,
    FeedId,
    Format,
    Position,
    Record,
    TokenId,
    Updates,
)
from storage.subscription_filter import wants


class UnknownTopic(Exception):
    """There is no such topic, or this client may not see it; the client is not told
    which."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        super().__init__("no such topic")


class NotSubscribed(Exception):
    """A client wants to leave a topic that its connection does not listen to."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        super().__init__("this connection is not subscribed to the topic")


class TooManyTopics(Exception):
    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(f"expected at most {limit} topics on one connection")


class QuotaExceeded(Exception):
    """The holder already has as many live connections as one holder may have."""

    def __init__(self, holder: str, most: int) -> None:
        super().__init__(
            f"expected at most {most} live connections of one {holder} at a time"
        )


class TooManyConnections(Exception):
    """The hub accepts no more connections: it has enough, or is about to stop."""

    def __init__(self) -> None:
        super().__init__("too many live connections; try again later")


LARGEST_BACKLOG = 2**20
"""Bytes that may wait for a client; a client that leaves more waiting is too slow."""


class ClientWriter(Protocol):
    """Writes to a client. Writing never waits; if more than `LARGEST_BACKLOG` bytes
    wait, the connection is closed."""

    sent_messages: int
    sent_bytes: int

    @property
    def waiting(self) -> int:
        """Bytes that were written and not yet taken by the client."""
        ...

    def write(self, message: PreparedMessage) -> None:
        """Write a message; does nothing once the connection is closed."""
        ...

    async def room(self) -> None:
        """Return when little of what was written still waits, or the connection is
        closed."""
        ...

    def close(self, closing: Closing) -> None: ...


NEVER = Position(sys.maxsize)
"""Above every record: a subscription at this position is sent nothing."""


class ChannelKey(msgspec.Struct, frozen=True, kw_only=True):
    """Subscriptions with equal keys get the same messages."""

    feed_id: FeedId
    topic: str
    format: Format
    updates: Updates

    def wants(self, record: Record) -> bool:
        any_fresh = any(ref.fresh for ref in record.entries)
        return record.feed_id == self.feed_id and wants(
            self.format, self.updates, record.kind, any_fresh
        )


class Interest(msgspec.Struct, frozen=True, kw_only=True):
    """What one subscription asks for. ``cursor`` None: new records only."""

    key: ChannelKey
    cursor: str | None = None
    id: MessageId | None = None


@dataclass(slots=True, eq=False)
class LiveSubscription:
    """One connection's interest in one topic. ``writer`` belongs to the connection."""

    connection: LiveConnection
    writer: ClientWriter
    key: ChannelKey
    position: Position  # records up to here were sent, or will not be
    last: Position  # the topic's record before the next one; 0: none
    has_followers: bool = False
    """Other topics of the same feed on the connection get each record after this
    one."""

    def send(self, message: PreparedMessage, position: Position) -> bool:
        """Write the notification of a record; False if the subscription had it
        already."""
        if position <= self.position:
            return False
        self.position = position
        self.writer.write(message.in_turn if self.has_followers else message)
        return True

    def leave(self) -> None:
        self.position = NEVER

    @property
    def has_left(self) -> bool:
        return self.position == NEVER


@dataclass(slots=True, eq=False)
class Channel:
    """Subscriptions that get the same messages, and have everything that is in the
    log."""

    key: ChannelKey
    last: Position
    members: set[LiveSubscription] = field(default_factory=set)


class Channels:
    """Channels by feed and key. A channel without members is forgotten."""

    def __init__(self) -> None:
        self._by_feed: dict[FeedId, dict[ChannelKey, Channel]] = {}

    def join(self, subscription: LiveSubscription) -> None:
        key = subscription.key
        channels = self._by_feed.setdefault(key.feed_id, {})
        channel = channels.get(key)
        if channel is None:
            channel = channels[key] = Channel(key, subscription.last)
        subscription.key = channel.key  # one for all members
        channel.members.add(subscription)

    def leave(self, subscription: LiveSubscription) -> None:
        """Take a subscription out of its channel; one that has not joined yet never
        will."""
        subscription.leave()
        channels = self._by_feed.get(subscription.key.feed_id, {})
        channel = channels.get(subscription.key)
        if channel is None:
            return
        channel.members.discard(subscription)
        if not channel.members:
            del channels[channel.key]
            if not channels:
                del self._by_feed[channel.key.feed_id]

    def wanting(self, record: Record) -> Iterator[Channel]:
        for channel in self._by_feed.get(record.feed_id, {}).values():
            if channel.key.wants(record):
                yield channel


Group = Sequence[LiveSubscription]
"""Subscriptions in the order in which they get a record."""


class Replayer(Protocol):
    """Brings subscriptions up to date and lets them join; see `hub.live.replays`."""

    def is_current(self, group: Group) -> bool:
        """Let the group join if there is nothing to replay; returns whether it has."""
        ...

    def replay(
        self, connection: LiveConnection, group: Group
    ) -> Coroutine[None, None, None]: ...


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """A client that was admitted. ``token`` None: it has no token that could end.

    ``viewer``: as whom it reads, see `storage.contract.FeedStore.find_readable`.
    ``holder``: the one whose connections it counts among; None: no quota applies.
    ``may_ask``: it can subscribe to other topics on the same connection. ``account``:
    its name; ``address`` "": not known.
    """

    token: TokenId | None = None
    holder: Holder | None = None
    viewer: AccountId | None = NOBODY
    may_ask: bool = True
    account: str = "anonymous"
    address: str = ""


ANONYMOUS_CLIENT = Client()


class ConnectionOpening(msgspec.Struct, frozen=True, kw_only=True):
    """The number of a connection in this process, and how and when it was opened."""

    id: int
    transport: str
    at: datetime


class LiveConnection:
    """A live connection. ``tasks`` owns its replays, and ends with it.

    ``furthest`` is the largest position at which one of its subscriptions began.
    """

    __slots__ = (
        "_replaying",
        "_replays",
        "_tasks",
        "_waiting",
        "client",
        "furthest",
        "opening",
        "subscriptions",
        "writer",
    )

    def __init__(
        self,
        writer: ClientWriter,
        replays: Replayer,
        tasks: asyncio.TaskGroup,
        opening: ConnectionOpening,
        client: Client = ANONYMOUS_CLIENT,
    ) -> None:
        self.writer = writer
        self.opening = opening
        self.client = client
        self.furthest = BEFORE_ALL
        self.subscriptions: dict[str, LiveSubscription] = {}
        self._replays = replays
        self._tasks = tasks
        self._waiting: list[LiveSubscription] = []
        self._replaying: asyncio.Task[None] | None = None

    @property
    def is_behind(self) -> bool:
        """Whether records that the client asked for are still to be replayed."""
        return self._replaying is not None

    def follow(self, group: Group) -> None:
        """Send the records after the group's positions, and then new ones."""
        for subscription in group:
            self.subscriptions[subscription.key.topic] = subscription
            self.furthest = max(self.furthest, subscription.position)
        self._find_followers({each.key.feed_id for each in group})
        if self._replays.is_current(group):
            return
        self._waiting += group
        if self._replaying is None:
            self._replaying = self._tasks.create_task(self._replay_waiting())

    def _find_followers(self, feeds: Set[FeedId]) -> None:
        """Note which topics of a feed get a record before another one does.

        This is not repeated when topics leave: the cursors that are sent then are still
        right.
        """
        turns = defaultdict(list)
        for each in self.subscriptions.values():
            if each.key.feed_id in feeds:
                turns[each.key.feed_id].append((turn_of(each.key.topic), each))
        for of_feed in turns.values():
            last, _subscription = max(of_feed, key=itemgetter(0))
            for turn, each in of_feed:
                each.has_followers = turn < last

    async def _replay_waiting(self) -> None:
        """Replay the log to all subscriptions that wait, together and in its order. So
        clients that come back with many topics each want the same records at about the
        same time, whatever the order of their requests."""
        while self._waiting:
            together = sorted(self._waiting, key=lambda each: turn_of(each.key.topic))
            self._waiting.clear()
            await self._replays.replay(self, together)
        self._replaying = None

    def end(self) -> None:
        """Stop replaying, since nobody receives it any more."""
        self._waiting.clear()
        if self._replaying is not None:
            self._replaying.cancel()


class ConnectionRegistry:
    """Indexes connections, so that those affected by an ending are found quickly."""

    def __init__(self) -> None:
        self.connections: dict[int, LiveConnection] = {}
        """By id, in the order in which they were opened."""
        self.transports: Counter[str] = Counter()
        """How many connections there are of each transport."""
        self._holders: defaultdict[TokenId, set[LiveConnection]] = defaultdict(set)
        self._listeners: defaultdict[FeedId, set[LiveSubscription]] = defaultdict(set)
        self._held: Counter[Holder] = Counter()

    @property
    def tokens(self) -> list[TokenId]:
        """The tokens that connections were opened with."""
        return list(self._holders)

    @property
    def feeds(self) -> list[FeedId]:
        """The feeds that somebody listens to, or is being caught up with."""
        return list(self._listeners)

    def find(self, id: int) -> LiveConnection | None:
        return self.connections.get(id)

    def holders(self, token: TokenId) -> list[LiveConnection]:
        return list(self._holders.get(token, ()))

    def listeners(self, feed_id: FeedId) -> list[LiveSubscription]:
        return list(self._listeners.get(feed_id, ()))

    def held(self, holder: Holder) -> int:
        """How many connections the holder has."""
        return self._held[holder]

    def anonymous(self) -> int:
        """How many connections are of clients without a token."""
        nobody = ANONYMOUS_CLIENT.account
        return sum(it.client.account == nobody for it in self.connections.values())

    def add(self, connection: LiveConnection) -> None:
        self.connections[connection.opening.id] = connection
        self.transports[connection.opening.transport] += 1
        if connection.client.holder is not None:
            self._held[connection.client.holder] += 1
        if connection.client.token is not None:
            self._holders[connection.client.token].add(connection)

    def remove(self, connection: LiveConnection) -> None:
        del self.connections[connection.opening.id]
        self.transports[connection.opening.transport] -= 1
        self._release(connection.client.holder)
        token = connection.client.token
        if token is not None:
            self._holders[token].discard(connection)
            if not self._holders[token]:
                del self._holders[token]

    def _release(self, holder: Holder | None) -> None:
        if holder is None:
            return
        self._held[holder] -= 1
        if not self._held[holder]:
            del self._held[holder]

    def listen(self, subscription: LiveSubscription) -> None:
        self._listeners[subscription.key.feed_id].add(subscription)

    def leave(self, subscription: LiveSubscription) -> None:
        feed_id = subscription.key.feed_id
        self._listeners[feed_id].discard(subscription)
        if not self._listeners[feed_id]:
            del self._listeners[feed_id]

    def __iter__(self) -> Iterator[LiveConnection]:
        return iter(list(self.connections.values()))

    def __len__(self) -> int:
        return len(self.connections)
