"""Polling states as they are stored here: numbers that every fetch writes, and JSON
that seldom changes.

The view ``fetch_states`` puts them together. What the JSON names counts; what it leaves
out is as the numbers have it: a feed was read when it was last fetched, and its
document is fresh for so many seconds from then on.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from operator import attrgetter
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
_told: Final = attrgetter(*_TOLD)
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
    fetched, fresh_until = polling.last_fetch, polling.fresh_until
    fresh_for = _seconds_between(fetched, fresh_until)
    success, parse = polling.last_success, polling.last_parse
    outcome = _Outcome(
        *_told(polling),
        UNSET if success == fetched else success,
        UNSET if parse == fetched else parse,
        UNSET if fresh_for >= 0 or fresh_until is None else fresh_until,
    )
    return FetchState(
        _encode(outcome),
        None if fetched is None else (fetched - EPOCH) // _MICROSECOND,
        fresh_for,
        polling.period,
        polling.price,
        polling.velocity,
        polling.unchanged,
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
