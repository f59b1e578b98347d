"""For how long an answer stays fresh, by what its server says (RFC 9111).

``s-maxage`` is ignored: it speaks to shared caches, and the hub asks for itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from protocols.dates import parse_date
from protocols.http.delta_seconds import parse_delta_seconds

DAY = 86_400.0
_DIRECTIVE = re.compile(r'([^\s=,;"]+)(?:\s*=\s*(?:"([^"]*)"?|([^\s,;"]*)))?')


def freshness(
    *, cache_control: str, expires: str, date: str, age: str, cap: float = DAY
) -> float | None:
    """Seconds from the answer's arrival, at most ``cap``; ``None`` if it names none.

    Zero means that a time was named and is over. ``max-age`` overrides ``Expires``
    (RFC 9111 5.3), which counts from ``Date`` and not from the hub's own clock.
    ``no-cache`` and ``no-store`` name no time, and a malformed number or date is as
    good as none.
    """
    directives = _directives(cache_control)
    if directives.get("no-cache") == "" or "no-store" in directives:
        return None
    if "max-age" in directives:
        seconds: float | None = parse_delta_seconds(directives["max-age"])
    else:
        seconds = _lifetime(expires, date)
    if seconds is None:
        return None
    return min(max(seconds - (parse_delta_seconds(age) or 0), 0.0), cap)


def _lifetime(expires: str, date: str) -> float | None:
    end, start = parse_date(expires), parse_date(date)
    return None if end is None or start is None else (end - start).total_seconds()


def _directives(cache_control: str) -> Mapping[str, str]:
    """By lower-case name; of repeated ones the first counts (RFC 9111 4.2.1)."""
    found: dict[str, str] = {}
    for name, quoted, token in _DIRECTIVE.findall(cache_control):
        found.setdefault(name.lower(), quoted or token)
    return found
