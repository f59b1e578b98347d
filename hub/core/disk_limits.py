"""How much of the log is deleted when the database exceeds its limits in bytes."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from storage.records import DatabaseStatus, Position, Retention

SPARED_SECONDS: Final = 86_400.0
"""Younger records stay, however large they are: subscribers may be a day late."""


class ByteLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Beyond ``soft`` the oldest records are deleted unless a retrying subscription
    needs them; beyond ``hard`` in any case."""

    soft: int
    hard: int


def retention_within(
    limits: ByteLimits, retention: Retention, database: DatabaseStatus, log_bytes: int
) -> Retention:
    """The retention, with the ends up to which records exceed the limits.

    ``log_bytes`` of the database are the log and its entries. The share of records to
    delete is the share of these bytes that is too much. The index of words shrinks
    later, so it takes several rounds. If everything else alone exceeds a limit, no
    record is deleted for it: that would not help.
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
