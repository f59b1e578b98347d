"""Times as SQLite keeps them: whole milliseconds since 1970 UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_START = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def to_milliseconds(time: datetime) -> int:
    """The millisecond that the time lies in: rounded down, before 1970 too."""
    since = time - _START  # of its parts only the days can be negative
    milliseconds = since.seconds * 1_000 + since.microseconds // 1_000
    return since.days * 86_400_000 + milliseconds


def to_milliseconds_or_none(time: datetime | None) -> int | None:
    return None if time is None else to_milliseconds(time)


def from_milliseconds(milliseconds: int) -> datetime:
    return _START + milliseconds * _MILLISECOND


def from_milliseconds_or_none(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else from_milliseconds(milliseconds)
