"""Whole seconds as headers carry them (RFC 9111 1.2.2)."""

from __future__ import annotations

LONGEST = 2**31
"""Of a larger number the RFC says: "the cache MUST consider the value to be
2147483648"."""


def parse_delta_seconds(text: str) -> int | None:
    """``None`` unless the text is digits only; a minus sign makes it garbage."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit()):
        return None
    return LONGEST if len(digits) > len(str(LONGEST)) else min(int(digits), LONGEST)
