"""Records as messages, each rendered once for all who get the same."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from hub.delivery.notifications import Notifications
from hub.live.prepared import Prepared
from hub.live.subscriptions import ChannelKey
from protocols.live.messages import NotificationMessage
from storage.records import Cursor, Format, Position, Record

KEPT_MESSAGES = 256
KEPT_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class _Rendered:
    """What makes one message differ from another."""

    position: Position
    prev: Position
    key: ChannelKey


class Rendering:
    """Keeps the last messages, bounded by count and bytes, for those who resume."""

    def __init__(self, notifications: Notifications, epoch: str) -> None:
        self._notifications = notifications
        self._epoch = epoch
        self._kept: OrderedDict[_Rendered, Prepared | None] = OrderedDict()
        self._kept_bytes = 0

    async def message(
        self, record: Record, key: ChannelKey, prev: Position
    ) -> Prepared | None:
        """None if there is nothing (any more) to tell of the record."""
        rendered = _Rendered(record.position, prev, key)
        if rendered in self._kept:
            self._kept.move_to_end(rendered)
            return self._kept[rendered]
        document = await self._notifications.document([record], key)
        message = None
        if document is not None:
            is_atom = key.format is Format.ATOM
            message = Prepared(
                NotificationMessage(
                    topic=key.topic,
                    cursor=self.cursor(record.position),
                    prev=self.cursor(prev) if prev else None,
                    kind=record.kind.value,
                    body=document.body.decode() if is_atom else document.body,
                )
            )
        self._keep(rendered, message)
        return message

    def cursor(self, position: Position) -> str:
        return str(Cursor(self._epoch, position))

    def _keep(self, rendered: _Rendered, message: Prepared | None) -> None:
        if rendered in self._kept:  # somebody else has rendered it meanwhile
            return
        self._kept[rendered] = message
        self._kept_bytes += _size(message)
        while len(self._kept) > KEPT_MESSAGES or self._kept_bytes > KEPT_BYTES:
            _, dropped = self._kept.popitem(last=False)
            self._kept_bytes -= _size(dropped)


def _size(message: Prepared | None) -> int:
    return 0 if message is None else len(message.payload)
