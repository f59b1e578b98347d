"""Which text of an entry its language is guessed from, and when a guess is accepted."""

from __future__ import annotations

from itertools import islice
from typing import Final

from protocols.model import Entry
from protocols.track.subject import primary_language, texts_of

FEWEST_LETTERS: Final = 100
"""With fewer letters no language is guessed: a name and a number fit many languages."""
MOST_CHARACTERS: Final = 1_000
"""The most characters looked at: they are enough, and each takes time."""
LEAST_CONFIDENCE: Final = 0.9


def telling_text(entry: Entry) -> str:
    """An entry's first words, without markup; "" if they are too few to guess from."""
    text = " ".join(texts_of(entry))[:MOST_CHARACTERS]
    letters = islice(filter(str.isalpha, text), FEWEST_LETTERS)
    return text if sum(1 for _ in letters) == FEWEST_LETTERS else ""


def believed(code: str, confidence: float) -> str:
    """The language (ISO 639-1) of a guess; "" if there is none, or it is unsure."""
    return primary_language(code) if confidence >= LEAST_CONFIDENCE else ""
