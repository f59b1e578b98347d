"""Figures of how late news arrive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Lateness:
    """Milliseconds from publication to arrival, of ``count`` arrivals."""

    count: int
    median: float
    p99: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Lateness:
        """The lateness of arrivals. ``seconds``: at least one, from the shortest on."""
        count = len(seconds)
        return cls(
            count=count,
            median=seconds[count // 2] * 1_000,
            p99=seconds[min(count * 99 // 100, count - 1)] * 1_000,
        )

    def __str__(self) -> str:
        return f"{self.count} arrivals, p50 {self.median:.0f} ms, p99 {self.p99:.0f} ms"
