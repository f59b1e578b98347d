"""What the bytes that the database may take mean for the log: how much of it goes."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from storage.records import DatabaseStatus, Position, Retention

SPARED_SECONDS: Final = 86_400.0
"""What is younger stays, however large it is: subscribers may be a day late."""


class ByteLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Beyond ``soft`` the oldest records go, unless a retrying subscription needs them;
    beyond ``hard`` whoever needs them."""

    soft: int
    hard: int


def retention_within(
    limits: ByteLimits, retention: Retention, database: DatabaseStatus
) -> Retention:
    """The retention with the ends of what is too much by now.

    As large a share of the log goes as the database is too large. What else there is
    does not shrink, and the index of words does so later: so it takes some rounds, and
    never too much.
    """
    return replace(
        retention,
        soft_end=_end_beyond(limits.soft, database),
        hard_end=_end_beyond(limits.hard, database),
        spared_age=SPARED_SECONDS,
    )


def _end_beyond(limit: int, database: DatabaseStatus) -> Position:
    used = database.size_bytes - database.free_bytes
    if used <= limit:
        return database.tail
    records = database.head - database.tail
    return Position(database.tail + (used - limit) * records // used)
