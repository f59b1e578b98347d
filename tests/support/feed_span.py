"""The weeks of all generated feeds: 60 % of them to learn from, then the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

HOUR, DAY = 3_600.0, 86_400.0
START = 1_767_571_200.0  # Monday, 5 January 2026
DAYS = 56
END = START + DAYS * DAY
LATE_DAY = 0.8 * DAYS
"""The middle of the test, when what changes does."""

Draw = Callable[[Random], Iterator[float]]
