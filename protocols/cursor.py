"""A cursor as clients hold it: ``epoch-position``, a place in the hub's log.

The epoch changes when a database is restored from a backup, so that a position from
before the restore is never taken for a current one.

Several topics may have news in the record at one position. They are sent that record
one after the other, and a connection may end in between: ``epoch-position~turn`` says
that the topics up to that turn have been sent the record, and that those after it have
not.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

from protocols.protocol_errors import InvalidValue

_CURSOR = re.compile(
    r"(?P<epoch>[0-9A-Za-z]{1,32})-(?P<position>[0-9]{1,18})(~(?P<turn>[0-9a-f]{16}))?"
)


def read_cursor(value: str, field: str = "cursor") -> tuple[str, int]:
    """Return the epoch and the position.

    Raises `InvalidValue`, which names the field.
    """
    epoch, position, _turn = _read(value, field)
    return epoch, position


def read_cursor_of(topic: str, value: str) -> tuple[str, int]:
    """Return the epoch, and the position up to which the topic has been sent
    everything.

    Raises `InvalidValue`.
    """
    epoch, position, turn = _read(value, "cursor")
    is_still_to_come = turn is not None and turn_of(topic) > turn
    return epoch, max(0, position - 1) if is_still_to_come else position


def cursor_in_turn(cursor: str, topic: str) -> str:
    """The record's cursor with the topic's turn: this topic has been sent the
    record.
    """
    return f"{cursor}~{turn_of(topic)}"


@lru_cache(maxsize=4096)
def turn_of(topic: str) -> str:
    """A key by which the topics of one record are sorted; they are sent it in that
    order.
    """
    return hashlib.sha256(topic.encode(errors="replace")).hexdigest()[:16]


def _read(value: str, field: str) -> tuple[str, int, str | None]:
    found = _CURSOR.fullmatch(value)
    if found is None or not value.isascii():
        raise InvalidValue(field, "a cursor of this hub (epoch-position)", value)
    return found["epoch"], int(found["position"]), found["turn"]
