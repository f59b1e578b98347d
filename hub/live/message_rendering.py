"""Records as messages, each rendered once for all that get the same message."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from hub.delivery.notifications import (
    NotificationBody,
    Notifications,
    NotRenderable,
    States,
)
from hub.live.live_connections import ChannelKey
from hub.live.prepared_message import PreparedMessage
from hub.runtime.caching import KeyedLock
from hub.runtime.clock import Clock
from hub.runtime.offloading import LARGE_BYTES, run_in_thread
from protocols.live.live_messages import NotificationMessage
from storage.records import Cursor, FeedId, Format, Position, Record

KEPT_MESSAGES = 4_096
"""As many as a busy hub has records in half a minute: when many clients come back they
want all of these, and not all at the same moment."""
KEPT_LONG = 256
KEPT_SECONDS = 60.0
"""Seconds for which more than `KEPT_LONG` messages are kept: by then all clients that
come back at once have done so."""
KEPT_BYTES = 32 * 2**20
ENCODINGS = 5
"""How many encodings of a kept message are in memory at most: its body, the message, a
frame, an event, and the chunk of an event."""


class _Rendered(msgspec.Struct, frozen=True):
    """All that makes one message differ from another."""

    position: Position
    prev: Position
    key: ChannelKey


class _Kept(msgspec.Struct, frozen=True):
    """A message, or None if there is nothing to tell, and the states of entries it
    shows."""

    message: PreparedMessage | None
    shows: States
    at: float  # monotonic, when it was rendered

    @property
    def size(self) -> int:
        return 0 if self.message is None else ENCODINGS * len(self.message.payload)


class MessageRendering:
    """Keeps the last messages, bounded by count and bytes, for clients that resume.

    A kept message is dropped when another one shows a newer state of one of its
    entries: a client that has seen the newer state must not be sent the older one.
    """

    def __init__(self, notifications: Notifications, epoch: str, clock: Clock) -> None:
        self._notifications = notifications
        self._epoch = epoch
        self._clock = clock
        self._locks: KeyedLock[_Rendered] = KeyedLock()
        self._kept: OrderedDict[_Rendered, _Kept] = OrderedDict()
        self._of_feeds: dict[FeedId, dict[_Rendered, None]] = {}
        self._kept_bytes = 0

    async def message(
        self, record: Record, key: ChannelKey, prev: Position
    ) -> PreparedMessage | None:
        """The message of a record for a channel; None if there is nothing left to tell
        of it. If it cannot be rendered it is None as well, and listeners see a gap."""
        rendered = _Rendered(record.position, prev, key)
        if rendered not in self._kept:
            async with self._locks.of(rendered):
                if rendered not in self._kept:
                    return await self._render(record, rendered)
        self._kept.move_to_end(rendered)
        return self._kept[rendered].message

    async def _render(
        self, record: Record, rendered: _Rendered
    ) -> PreparedMessage | None:
        key = rendered.key
        try:
            document = await self._notifications.document([record], key)
        except NotRenderable:
            return None
        if document is None:
            kept = _Kept(None, (), self._clock.monotonic())
        else:
            message = self._message(record, key, rendered.prev, document)
            if len(document.body) > LARGE_BYTES:
                await run_in_thread(message.encode)
            kept = _Kept(message, document.shows, self._clock.monotonic())
        self._keep(rendered, kept)
        return kept.message

    def cursor(self, position: Position) -> str:
        return str(Cursor(self._epoch, position))

    def _message(
        self,
        record: Record,
        key: ChannelKey,
        prev: Position,
        document: NotificationBody,
    ) -> PreparedMessage:
        is_atom = key.format is Format.ATOM
        return PreparedMessage(
            NotificationMessage(
                topic=key.topic,
                cursor=self.cursor(record.position),
                prev=self.cursor(prev) if prev else None,
                kind=record.kind.value,
                body=document.body.decode() if is_atom else document.body,
            )
        )

    def _keep(self, rendered: _Rendered, kept: _Kept) -> None:
        """Keep a message, unless a newer state was shown, or the same was kept,
        meanwhile."""
        if self._is_outdated(rendered, kept) or rendered in self._kept:
            return
        self._kept[rendered] = kept
        self._of_feeds.setdefault(rendered.key.feed_id, {})[rendered] = None
        self._kept_bytes += kept.size
        while self._has_too_many():
            self._drop(next(iter(self._kept)))

    def _has_too_many(self) -> bool:
        count = len(self._kept)
        if count > KEPT_MESSAGES or self._kept_bytes > KEPT_BYTES:
            return True
        if count <= KEPT_LONG:
            return False
        oldest = next(iter(self._kept.values()))
        return oldest.at + KEPT_SECONDS <= self._clock.monotonic()

    def _drop(self, rendered: _Rendered) -> None:
        self._kept_bytes -= self._kept.pop(rendered).size
        of_feed = self._of_feeds[rendered.key.feed_id]
        del of_feed[rendered]
        if not of_feed:
            del self._of_feeds[rendered.key.feed_id]

    def _is_outdated(self, rendered: _Rendered, kept: _Kept) -> bool:
        """Whether a kept message shows a newer state; drops those that show an older
        one."""
        latest = dict(kept.shows)
        is_outdated = False
        for each in list(self._of_feeds.get(rendered.key.feed_id, ())):
            leads = [
                latest[entry_id] - revision
                for entry_id, revision in self._kept[each].shows
                if entry_id in latest
            ]
            is_outdated |= min(leads, default=0) < 0
            if max(leads, default=0) > 0:
                self._drop(each)
        return is_outdated
