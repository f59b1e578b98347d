"""Durations in words, written and read."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_SPAN = re.compile(r"(\d{1,6}(?:\.\d{1,6})?) ?(s|min|m|h|d|w)")
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def duration(seconds: float) -> str:
    """A duration in words: ``45 s``, ``12 min``, ``3.5 h``, ``2 d``."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


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
