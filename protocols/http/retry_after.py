"""``Retry-After`` (RFC 9110 10.2.3): when a server wants to be asked again."""

from __future__ import annotations

from datetime import datetime

from protocols.dates import parse_date
from protocols.http.delta_seconds import LONGEST, parse_delta_seconds


def parse_retry_after(header: str, now: datetime) -> float | None:
    """Seconds from ``now``, at most 2**31; ``None`` for the past and for garbage.

    Takes seconds or a date. How long the hub is willing to wait is the caller's.
    """
    seconds = parse_delta_seconds(header)
    if seconds is not None:
        return float(seconds)
    moment = parse_date(header)
    if moment is None or moment < now:
        return None
    return min((moment - now).total_seconds(), float(LONGEST))
