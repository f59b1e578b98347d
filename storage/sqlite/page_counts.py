"""How many pages are shown in each stretch of time, level by level.

A page of the list is found by these: its cost is that of a few short stretches, however
many pages there are before it.
"""

from __future__ import annotations

import sqlite3
from collections import Counter

SHIFTS = (35, 28, 21, 14)
"""Of dates in milliseconds: a year, three days, half an hour, 16 seconds."""
_BRANCHES = 7
"""Bits between two levels."""


class CountChanges:
    """What a unit of work changes of the counts, written at its end."""

    def __init__(self) -> None:
        self._changes: Counter[int] = Counter()

    def add(self, dated: int, pages: int) -> None:
        """By the shortest stretch; all others follow from it."""
        self._changes[dated >> SHIFTS[-1]] += pages

    def write(self, connection: sqlite3.Connection) -> None:
        changes: Counter[tuple[int, int]] = Counter()
        for bucket, pages in self._changes.items():
            for level, shift in enumerate(SHIFTS):
                changes[level, bucket >> (shift - SHIFTS[-1])] += pages
        connection.executemany(
            "INSERT INTO page_counts VALUES (?, ?, ?) ON CONFLICT (level, bucket)"
            " DO UPDATE SET pages = pages + excluded.pages",
            [(*key, pages) for key, pages in sorted(changes.items()) if pages],
        )


def _stretches(within: str, level: int) -> str:
    """The stretch of a level that has the wanted place, and how many come before it."""
    bounds = ""
    if level:
        bounds = (
            f" AND c.bucket >= {within}.bucket << {_BRANCHES}"
            f" AND c.bucket < ({within}.bucket + 1) << {_BRANCHES}"
        )
    source = f"{within}, page_counts c" if level else "page_counts c"
    before = f"{within}.before + " if level else ""
    return (
        f"SELECT bucket, before FROM (SELECT c.bucket,"
        f" {before}sum(c.pages) OVER (ORDER BY c.bucket DESC) - c.pages AS before"
        f" FROM {source} WHERE c.level = {level} AND c.pages > 0{bounds})"
        " WHERE before <= :skip ORDER BY before DESC LIMIT 1"
    )


PLACE = "WITH " + ", ".join(
    f"level{level} AS MATERIALIZED ({_stretches(f'level{level - 1}', level)})"
    for level in range(len(SHIFTS))
)
"""Ends in ``level3``: the shortest stretch that the place ``:skip`` lies in."""
