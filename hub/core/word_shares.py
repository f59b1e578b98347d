"""How common words are, learnt from the entries that go by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

MOST_WORDS = 100_000
"""As many are counted; when there are more, what is old and rare is forgotten."""

_PRIOR_ENTRIES = 20.0
"""So many entries are made up, in which short words are common and long ones rare."""
_LONGEST_COMMON = 10


class WordShares:
    """Shares of all entries that have a word. Not for several threads."""

    def __init__(self, most_words: int = MOST_WORDS) -> None:
        self._most_words = most_words
        self._entries = 0.0
        self._counts: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._counts)

    def observe(self, words: Iterable[str]) -> None:
        """Count one entry's words; each of them is given once."""
        self._entries += 1
        self._counts.update(words)
        if len(self._counts) > self._most_words:
            self._forget()

    def share_of(self, word: str) -> float:
        """From 0 to 1. Of a word never seen it is guessed by its length."""
        guess = 2.0 ** -min(len(word), _LONGEST_COMMON)
        entries = self._entries + _PRIOR_ENTRIES
        return (self._counts[word] + _PRIOR_ENTRIES * guess) / entries

    def _forget(self) -> None:
        """Halve all counts: a word that was seen once, long ago, is gone."""
        self._entries /= 2
        halves = ((word, count // 2) for word, count in self._counts.items())
        self._counts = Counter({word: count for word, count in halves if count})
