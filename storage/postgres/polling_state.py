"""Polling states as they are stored here: numbers that every fetch writes, and JSON
that seldom changes.

The view ``fetch_states`` puts them together. What the JSON names counts; what it leaves
out is as the numbers have it: a feed was read when it was last fetched, and its
document is fresh for so many seconds from then on.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import fields

from storage.records import HOT_FIELDS, Polling
from storage.sqlite.columns import EPOCH

NUMBERS: Final = ("last_fetch", "period", "price", "velocity", "unchanged")
_IMPLIED: Final = ("last_success", "last_parse", "fresh_until")
_MICROSECOND: Final = timedelta(microseconds=1)
_SECOND: Final = timedelta(seconds=1)
_LONGEST: Final = 2**31 - 1
_TOLD: Final = tuple(each for each in HOT_FIELDS if each not in (*NUMBERS, *_IMPLIED))
_TYPES: Final = {each.name: each.type for each in fields(Polling)}
_Outcome: Final[Any] = msgspec.defstruct(
    "Outcome",
    [
        *((name, _TYPES[name]) for name in _TOLD),
        *((name, datetime | None | UnsetType, UNSET) for name in _IMPLIED),
    ],
)
_encode: Final = msgspec.json.Encoder().encode


class FetchState(NamedTuple):
    """The columns of ``feed_hot`` and ``feed_outcomes`` that a polling state fills."""

    outcome: bytes
    last_fetch: int | None  # microseconds since 1970
    fresh_for: int  # seconds; -1: as the outcome says
    period: float
    price: float
    velocity: float
    unchanged: int


def fetch_state_of(polling: Polling) -> FetchState:
    fetched = polling.last_fetch
    fresh_for = _seconds_between(fetched, polling.fresh_until)
    is_implied = (
        polling.last_success == fetched,
        polling.last_parse == fetched,
        fresh_for >= 0 or polling.fresh_until is None,
    )
    told = [getattr(polling, name) for name in _TOLD]
    implied = [
        UNSET if is_left_out else getattr(polling, name)
        for name, is_left_out in zip(_IMPLIED, is_implied, strict=True)
    ]
    return FetchState(
        outcome=_encode(_Outcome(*told, *implied)),
        last_fetch=None if fetched is None else (fetched - EPOCH) // _MICROSECOND,
        fresh_for=fresh_for,
        period=polling.period,
        price=polling.price,
        velocity=polling.velocity,
        unchanged=polling.unchanged,
    )


def _seconds_between(begin: datetime | None, end: datetime | None) -> int:
    """Whole seconds; -1 if it is none of their number, or more than a column takes."""
    if begin is None or end is None:
        return -1
    seconds, rest = divmod(end - begin, _SECOND)
    return seconds if not rest and 0 <= seconds <= _LONGEST else -1


_POLL: Final = 14
"""Bytes of a poll: see `storage.sqlite.polls`."""


def turned_polls(packed: bytes) -> bytes:
    """The latest polls of a feed the other way round: ``feed_hot`` has the latest
    first, all else has it last."""
    begins = range(len(packed) - _POLL, -1, -_POLL)
    return b"".join(packed[begin : begin + _POLL] for begin in begins)
