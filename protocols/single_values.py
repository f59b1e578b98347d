"""Parameters that may be given once."""

from __future__ import annotations

from collections.abc import Set

from protocols.errors import InvalidValue


def only_value(name: str, values: Set[str], default: str = "") -> str:
    """Raises `InvalidValue` where two contradict each other."""
    if len(values) > 1:
        raise InvalidValue(name, "one value, not several")
    return next(iter(values), default)


def required_value(name: str, value: str, expected: str) -> str:
    """Raises `InvalidValue` if it is missing."""
    if not value:
        raise InvalidValue(name, f"{expected}; it is missing")
    return value
