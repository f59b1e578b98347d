"""The last requests to a callback as small bars: upwards for those that succeeded, the
higher the longer they took, and downwards for those that failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from statistics import median
from typing import Final

from storage.records import Attempt

STEP: Final = 6
BASE: Final = 30
"""Where bars begin, measured from the top of the picture."""
DEPTH: Final = 10
"""The depth of a failure's bar."""
_LOWEST: Final = 4
_LONGEST: Final = 20_000.0
"""The longest time that a request may take, in milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    x: int
    y: int
    height: int
    is_delivered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparkline:
    """A drawn row of bars; ``sentence`` says in numbers what they show."""

    bars: tuple[Bar, ...]
    sentence: str

    @property
    def width(self) -> int:
        return STEP * len(self.bars)

    @property
    def height(self) -> int:
        return BASE + DEPTH


def draw_attempts(attempts: Sequence[Attempt]) -> Sparkline:
    """Draw at least one attempt; ``attempts`` has the newest first."""
    bars = [_bar(place, each) for place, each in enumerate(reversed(attempts))]
    taken = [each.milliseconds for each in attempts if not each.error]
    sentence = f"2xx answers: {len(taken)} of the last {len(attempts)} requests"
    if taken:
        sentence += (
            f", after {median(taken):,.0f} ms (median), at most {max(taken):,} ms"
        )
    return Sparkline(bars=tuple(bars), sentence=f"{sentence}.")


def _bar(place: int, attempt: Attempt) -> Bar:
    if attempt.error:
        return Bar(x=STEP * place, y=BASE, height=DEPTH, is_delivered=False)
    share = log10(1 + min(attempt.milliseconds, _LONGEST)) / log10(1 + _LONGEST)
    height = _LOWEST + round((BASE - _LOWEST) * share)
    return Bar(x=STEP * place, y=BASE - height, height=height, is_delivered=True)
