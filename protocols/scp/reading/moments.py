"""Times as SCP has them: ISO 8601, to the moment they name."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_FULL = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:[Zz]|[-+]\d\d:?\d\d)?",
    re.ASCII,
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def read_moment(value: object, *, allows_days: bool = True) -> datetime | None:
    """Aware, in UTC; None for what is none. Without a zone it is taken as UTC."""
    if not isinstance(value, str):
        return None
    if not _FULL.fullmatch(value) and not (allows_days and _DAY.fullmatch(value)):
        return None
    try:
        moment = datetime.fromisoformat(value.upper())
        if moment.tzinfo is UTC:
            return moment
        if moment.tzinfo is None:
            return moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):  # such as a thirteenth month
        return None
