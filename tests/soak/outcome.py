"""The outcome of a soak."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.soak.memory import Trend


@dataclass(slots=True)
class Outcome:
    """The verdict, with what was done and what came of it."""

    seed: int
    complaints: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    hostile: Counter[str] = field(default_factory=Counter)  # requests they got
    recoveries: list[float] = field(default_factory=list)  # seconds, kill to ready
    published: int = 0
    delivered: int = 0
    copies: int = 0
    read_live: int = 0
    connections: int = 0
    subscribers: int = 0  # all there ever were
    readers: int = 0
    refused: Counter[str] = field(default_factory=Counter)  # with 503: asked of what
    looked_up: int = 0  # what had come of requests that were never answered
    counted: str = ""  # what the long life counted, as it was seen
    largest: int = 0  # bytes of memory of a process, at most
    trend: Trend | None = None  # of the long life
