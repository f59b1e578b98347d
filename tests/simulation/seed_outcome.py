"""What came of one seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class SeedOutcome:
    seed: str
    complaints: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    published: int = 0
    delivered: int = 0
    copies: int = 0
    relived: int = 0  # notifications that came again after a backup was put in place
    listened: int = 0  # entries, over all listeners
    recoveries: list[float] = field(default_factory=list)
    """Virtual seconds from the last fault until all had everything."""
    fingerprint: str = ""


def faults_logged(logs: list[dict[str, object]]) -> Iterator[str]:
    """Whatever is logged with a traceback is a fault of the hub's own."""
    for line in logs:
        if line.get("exc_info"):
            yield f"{line['event']}: {line}"
