"""Tables that fit a terminal: how wide columns are, and what of a cell is shown."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final

from hub.cli import Colour

GAP: Final = 2
"""Blanks between two columns."""
LEAST_WIDTH: Final = 8
"""A column that is cut keeps so much."""
_CUT: Final = "…"
_STATES: Final = {
    Colour.GOOD: ("ok", "active", "good", "pushed", "added", "ready"),
    Colour.DOUBTFUL: ("slow", "paused", "pending", "known", "retrying"),
    Colour.BAD: ("failing", "gone", "dead", "revoked", "failed", "refused"),
}
_COLOURS: Final = {word: colour for colour, words in _STATES.items() for word in words}
COLOURED: Final = frozenset(("STATE", "HEALTH", "OUTCOME"))
"""Columns of states."""


def text_width(text: str) -> int:
    """Columns of a terminal that it takes."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fit_columns(widths: Sequence[int], room: int) -> list[int]:
    """Widths that fit, as far as they can: the widest give way first."""
    fitted = list(widths)
    excess = sum(fitted) + GAP * (len(fitted) - 1) - room
    while excess > 0 and max(fitted) > LEAST_WIDTH:
        fitted[fitted.index(max(fitted))] -= 1
        excess -= 1
    return fitted


def cut(text: str, width: int) -> str:
    """As much of a text as fits: its beginning, of a URL also its end."""
    if text_width(text) <= width:
        return text
    kept = (width - 1) // 3 if text.startswith(("http://", "https://")) else 0
    end = _begin(text[::-1], kept)[::-1] if kept else ""
    return f"{_begin(text, width - 1 - kept)}{_CUT}{end}"


def _begin(text: str, width: int) -> str:
    taken = 0
    for index, character in enumerate(text):
        taken += _width(character)
        if taken > width:
            return text[:index]
    return text


def colour_of(heading: str, cell: str) -> Colour | None:
    """Of states, by their first word."""
    word = cell.split(maxsplit=1)[0] if cell else ""
    return _COLOURS.get(word.strip(",:")) if heading in COLOURED else None
