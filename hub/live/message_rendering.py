"""Records as messages, each rendered once for all that get the same."""

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
"""As many as a busy hub has records in half a minute: a crowd that comes back wants
them all, and not all at the same moment."""
KEPT_LONG = 256
KEPT_SECONDS = 60.0
"""How long more than `KEPT_LONG` are kept: a crowd has come back within that."""
KEPT_BYTES = 32 * 2**20
ENCODINGS = 5
"""How often a kept message is in memory at most: its body, as a message, as a frame, as
an event, and as a chunk of one."""


class _Rendered(msgspec.Struct, frozen=True):
    """What makes one message differ from another."""

    position: Position
    prev: Position
    key: ChannelKey


class _Kept(msgspec.Struct, frozen=True):
    """A message, None if there is nothing to tell, and what it shows."""

    message: PreparedMessage | None
    shows: States
    at: float  # monotonic, when it was rendered

    @property
    def size(self) -> int:
        return 0 if self.message is None else ENCODINGS * len(self.message.payload)


class MessageRendering:
    """Keeps the last messages, bounded by count and bytes, for those who resume.

    A kept one goes when another shows a newer state of one of its entries: who has
    been told of that must not be taken back.
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
        """None if there is nothing (any more) to tell of the record, or it cannot be
        rendered: then its listeners see a gap."""
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
        """Unless a newer state was shown, or somebody else rendered it, meanwhile."""
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
        """Whether a kept one shows a newer state; those that show an older one go."""
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
