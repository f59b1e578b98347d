"""When a limit of requests ends, as servers say it that send no ``Retry-After``.

``X-RateLimit-Reset`` is no standard: GitHub made it a Unix time, and others send the
seconds that are left. What is too small to be a time of this century is seconds.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import orjson

from protocols.http.delta_seconds import LONGEST

_THIS_CENTURY: Final = 1_000_000_000
_LONGEST_BODY: Final = 64 * 1024


def parse_reset(header: str, body: bytes, now: datetime) -> float | None:
    """Seconds from ``now``, at most 2**31; None for the past and for garbage.

    ``header`` is the value of ``X-RateLimit-Reset``, "" if there is none; then a
    member ``retry_after`` of a JSON ``body`` is read the same way.
    """
    value = _number(header.strip())
    if value is None and len(body) <= _LONGEST_BODY:
        value = _member(body)
    if value is None:
        return None
    seconds = value - now.timestamp() if value >= _THIS_CENTURY else value
    return min(seconds, float(LONGEST)) if seconds > 0 else None


def _member(body: bytes) -> float | None:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    found = document.get("retry_after") if isinstance(document, dict) else None
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return _number(str(found)) if is_number or isinstance(found, str) else None


def _number(text: str) -> float | None:
    """A decimal number that is not negative; None for anything else."""
    digits, _, fraction = text.partition(".")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 15:
        return None
    if fraction and not (fraction.isascii() and fraction.isdigit()):
        return None
    return float(text)
