"""Words of no language, as many as are wanted."""

from __future__ import annotations

from random import Random
from typing import Final

_SYLLABLES: Final = (
    *("ba", "cen", "dor", "fi", "gul", "han", "jo", "kle", "mer", "nu", "pri"),
)


def write_words(draw: Random, count: int) -> str:
    drawn = ("".join(draw.choices(_SYLLABLES, k=2)) for _ in range(count))
    return " ".join(drawn)
