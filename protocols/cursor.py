"""A cursor as clients hold it: ``epoch-position``, a place in the hub's log.

The epoch changes when a database is restored from a backup, so that an old position is
never taken for a present one.

Several topics may have news in the record of one position. They get it in turn, and a
connection may end in between: ``epoch-position~turn`` says that the record was given to
the topics up to that turn, and is still to be given to those after it.
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
    """The epoch and the position. Raises `InvalidValue` naming the field."""
    epoch, position, _turn = _read(value, field)
    return epoch, position


def read_cursor_of(topic: str, value: str) -> tuple[str, int]:
    """The epoch, and the position up to which that topic was given everything.

    Raises `InvalidValue`.
    """
    epoch, position, turn = _read(value, "cursor")
    is_still_to_come = turn is not None and turn_of(topic) > turn
    return epoch, max(0, position - 1) if is_still_to_come else position


def cursor_in_turn(cursor: str, topic: str) -> str:
    """The cursor of a record when it was given to topics up to the turn of one."""
    return f"{cursor}~{turn_of(topic)}"


@lru_cache(maxsize=4096)
def turn_of(topic: str) -> str:
    """The order in which a topic is given a record that other topics are given, too."""
    return hashlib.sha256(topic.encode(errors="replace")).hexdigest()[:16]


def _read(value: str, field: str) -> tuple[str, int, str | None]:
    found = _CURSOR.fullmatch(value)
    if found is None or not value.isascii():
        raise InvalidValue(field, "a cursor of this hub (epoch-position)", value)
    return found["epoch"], int(found["position"]), found["turn"]
