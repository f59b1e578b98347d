"""Byte counts in words."""

from __future__ import annotations


def byte_size(count: float) -> str:
    """A count of bytes in words: ``512 B``, ``3.5 kB``, ``600 MB``, ``1.23 GB``."""
    for size, unit in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= size * 0.9995:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"
