"""How well texts match a search, from 0 to 1.

A ranker is given all candidates at once, so one that ranks by meaning instead of words
(by vectors of a model, say) can take its place.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from protocols.track.words import folded_words, words_of

LONGEST_READ = 20_000
"""Characters of a text that are compared."""
_SATURATION = 0.6
_TITLE_WEIGHT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """``title`` counts for more than ``text``."""

    title: str = ""
    text: str = ""


class Ranker(Protocol):
    """The interface for other ways to rank."""

    def rank(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        """A score from 0 to 1 for each candidate, in order; 0: it does not match at
        all.
        """
        ...


class WordRanker:
    """Ranks texts by the words of the query.

    The score depends on how many of the words a text has, how rare these are among all
    the candidates, how often they occur, and whether they are in the title.
    """

    def rank(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        wanted = list(dict.fromkeys(query_words(query)))
        counted = [_count(each, wanted) for each in candidates]
        weights = {word: _rarity(word, counted) for word in wanted}
        total = sum(weights.values())
        return [_score(each, weights, total) for each in counted]


def query_words(query: str) -> list[str]:
    return folded_words(words_of(query))


def _count(candidate: Candidate, wanted: Sequence[str]) -> dict[str, int]:
    titles = Counter(query_words(candidate.title[:LONGEST_READ]))
    texts = Counter(query_words(candidate.text[:LONGEST_READ]))
    return {word: titles[word] * _TITLE_WEIGHT + texts[word] for word in wanted}


def _rarity(word: str, counted: Sequence[dict[str, int]]) -> float:
    having = sum(1 for each in counted if each[word])
    return math.log(1 + (len(counted) + 1) / (having + 1))


def _score(counts: dict[str, int], weights: dict[str, float], total: float) -> float:
    """The sum of the words' weights; a word counts more the more often it occurs."""
    found = sum(
        weight * counts[word] / (counts[word] + _SATURATION)
        for word, weight in weights.items()
    )
    return round(min(found / total, 1.0), 4) if total else 0.0
