"""Durations in words, written and read."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from math import ceil, floor, log10

_SPAN = re.compile(r"(\d{1,6}(?:\.\d{1,6})?) ?(s|min|m|h|d|w)")
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_ALMOST_A_MINUTE = 59.95
"""Seconds that would be 60 in three figures."""


def duration(seconds: float) -> str:
    """A duration in words, in two units at most: ``45 s``, ``1 min 10 s``, ``12 min``,
    ``2 h 5 min``, ``3 d 4 h``."""
    if seconds < _ALMOST_A_MINUTE:
        return f"{seconds:.3g} s"
    if (whole := round(seconds)) < 3_600:
        return _two_units(whole, 60, "min", "s")
    if (minutes := round(seconds / 60)) < 1_440:
        return _two_units(minutes, 60, "h", "min")
    return _two_units(round(seconds / 3_600), 24, "d", "h")


def rounded_up(seconds: float) -> float:
    """The seconds, rounded up to what `duration` shows: an end that is told as ``within
    27.6 s`` must not lie before it."""
    if seconds < _ALMOST_A_MINUTE:
        shown = float(f"{seconds:.3g}")
        last_digit = 10.0 ** (floor(log10(seconds)) - 2) if seconds > 0 else 0.0
        return shown if shown >= seconds else float(f"{shown + last_digit:.3g}")
    unit = 1 if seconds < 3_600 else 60 if seconds < 86_400 else 3_600
    return float(ceil(seconds / unit) * unit)


def _two_units(count: int, size: int, unit: str, small: str) -> str:
    whole, rest = divmod(count, size)
    return f"{whole} {unit} {rest} {small}" if rest else f"{whole} {unit}"


def read_span(text: str) -> timedelta | None:
    """Read ``90s``, ``15min``, ``12h``, ``7d`` or ``2w``; None for anything else."""
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        return None
    return timedelta(seconds=float(found[1]) * _SECONDS[found[2]])


def read_moment(text: str, now: datetime) -> datetime | None:
    """Read a time (RFC 3339, in UTC if it names no offset), or a span, which is how
    long before ``now`` it was; None for anything else."""
    span = read_span(text)
    try:
        if span is not None:
            return now - span
        at = datetime.fromisoformat(text.strip())
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
