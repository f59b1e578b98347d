"""A cursor as clients hold it: ``epoch-position``, a place in the hub's log.

The epoch changes when a database is restored from a backup, so that a position handed
out before is never taken for one of now.
"""

from __future__ import annotations

import re

from protocols.errors import InvalidValue

_CURSOR = re.compile(r"(?P<epoch>[0-9A-Za-z]{1,32})-(?P<position>[0-9]{1,18})")


def read_cursor(value: str, field: str = "cursor") -> tuple[str, int]:
    """The epoch and the position. Raises `InvalidValue` naming the field."""
    found = _CURSOR.fullmatch(value)
    if found is None or not value.isascii():
        raise InvalidValue(field, "a cursor of this hub (epoch-position)", value)
    return found["epoch"], int(found["position"])
