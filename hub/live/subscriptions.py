"""Who listens to which topic, grouped by what is rendered alike."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hub.live.outlet import Outlet
from hub.live.prepared import Prepared
from protocols.live.live_messages import MessageId
from storage.records import FeedId, Format, Position, Record, Updates
from storage.subscription_filter import wants

if TYPE_CHECKING:
    from hub.live.connections import Connection

NEVER = Position(sys.maxsize)
"""Above every record: whoever stands there is sent nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelKey:
    """Whoever has the same gets the same messages."""

    feed_id: FeedId
    topic: str
    format: Format
    updates: Updates

    def wants(self, record: Record) -> bool:
        any_fresh = any(ref.fresh for ref in record.entries)
        return record.feed_id == self.feed_id and wants(
            self.format, self.updates, record.kind, any_fresh
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Interest:
    """What one subscription asks for. ``cursor`` None: from now on."""

    key: ChannelKey
    cursor: str | None = None
    id: MessageId | None = None


@dataclass(slots=True, eq=False)
class LiveSubscription:
    """One connection's interest in one topic. ``outlet`` is the connection's."""

    connection: Connection
    outlet: Outlet
    key: ChannelKey
    position: Position  # everything up to here was sent, or is not to be
    last: Position  # the topic's record before the next one; 0: none
    has_followers: bool = False
    """Other topics of the feed on the connection are given each record after it."""

    def send(self, message: Prepared, position: Position) -> bool:
        """A notification of the record there; False: it had that already."""
        if position <= self.position:
            return False
        self.position = position
        self.outlet.write(message.in_turn if self.has_followers else message)
        return True

    def leave(self) -> None:
        self.position = NEVER

    @property
    def has_left(self) -> bool:
        return self.position == NEVER


@dataclass(slots=True, eq=False)
class Channel:
    """All that get the same messages, and have all that is in the log already."""

    key: ChannelKey
    last: Position
    members: set[LiveSubscription] = field(default_factory=set)


class Channels:
    """By feed and key. A channel without members is forgotten."""

    def __init__(self) -> None:
        self._by_feed: dict[FeedId, dict[ChannelKey, Channel]] = {}

    def join(self, subscription: LiveSubscription) -> None:
        key = subscription.key
        channels = self._by_feed.setdefault(key.feed_id, {})
        channel = channels.get(key)
        if channel is None:
            channel = channels[key] = Channel(key, subscription.last)
        channel.members.add(subscription)

    def leave(self, subscription: LiveSubscription) -> None:
        """Also of one that has not joined yet: then it will not."""
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
