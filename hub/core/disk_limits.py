"""How much of the log is deleted when the database exceeds its limits in bytes."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from storage.records import DatabaseStatus, Position, Retention

SPARED_SECONDS: Final = 86_400.0
"""What is younger stays, however large it is: subscribers may be a day late."""


class ByteLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Beyond ``soft`` the oldest records are deleted unless a retrying subscription
    needs them; beyond ``hard`` in any case."""

    soft: int
    hard: int


def retention_within(
    limits: ByteLimits, retention: Retention, database: DatabaseStatus, log_bytes: int
) -> Retention:
    """The retention with the ends of what is too much by now.

    ``log_bytes`` of the database are the log and its entries. As large a share of the
    records goes as these bytes are too many. The index of words shrinks later: so it
    takes some rounds. If all else alone is more than a limit, no record goes for it:
    that would not help.
    """
    return replace(
        retention,
        soft_end=_end_beyond(limits.soft, database, log_bytes),
        hard_end=_end_beyond(limits.hard, database, log_bytes),
        spared_age=SPARED_SECONDS,
    )


def _end_beyond(limit: int, database: DatabaseStatus, log_bytes: int) -> Position:
    used = database.size_bytes - database.free_bytes
    if used <= limit or used - log_bytes >= limit:
        return database.tail
    records = database.log_end - database.tail
    return Position(database.tail + (used - limit) * records // log_bytes)
