"""Parts of texts, as queries for FTS5's trigram tokenizer.

A query finds texts that have the trigrams; whether these are consecutive is checked in
the texts.
"""

from __future__ import annotations

from collections.abc import Sequence

MOST_TRIGRAMS = 6
"""The most trigrams looked up. Each further one costs as much as it saves in reading
texts."""


def trigrams_of(texts: Sequence[str]) -> list[str]:
    """Trigrams side by side, those with digits first: they are rarer than others.

    The last of a text may overlap the one before it.
    """
    found = {
        text[start : start + 3]
        for text in texts
        for start in (*range(0, len(text) - 2, 3), len(text) - 3)
        if start >= 0
    }
    return sorted(found, key=_commonness)[:MOST_TRIGRAMS]


def _commonness(three: str) -> tuple[int, str]:
    return -sum(each.isdigit() for each in three), three


_USUAL = "https://www. .com/ .org/ .net/ .example/ /feed/ /rss.xml /atom.xml /blog/"
_OF_ALL = {_USUAL[start : start + 3] for start in range(len(_USUAL) - 2)}
MOST_RARE = 3


def rare_trigrams_of(text: str) -> list[str]:
    """A few trigrams of a part of a feed's URL or title, chosen to occur in few feeds.

    A trigram that all feeds have is as costly as reading all, and excludes none.
    """
    found = trigrams_of([text])
    return ([each for each in found if each not in _OF_ALL] or found)[:MOST_RARE]


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""').replace("\0", " ") + '"'


def folded(text: str) -> str:
    """The text in lower case, to compare without case; in SQL ``fold``."""
    return text.lower()
