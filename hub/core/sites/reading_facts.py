"""What any walk can tell of itself, for people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingFacts:
    """``phase`` is what is under way, "" between visits; ``cursor`` from where changes
    are asked for. ``walked_at`` is the last full walk, ``reread_at`` the last time that
    every page was read."""

    phase: str = ""
    cursor: str = ""
    walked_at: datetime | None = None
    reread_at: datetime | None = None
