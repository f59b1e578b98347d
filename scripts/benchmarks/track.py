"""Track queries against an entry of 400 words: what matching costs a commit.

The floor is the same index with a tenth of the queries and as many matches: what an
entry costs must not grow with the number of queries that wait for other entries.
"""

from __future__ import annotations

import random
import time
from bisect import bisect
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import accumulate
from pathlib import Path
from statistics import median

from hub.core.news.track_matching import QueryIndex, WordShares
from protocols.model import Entry, Feed, Link, Text
from protocols.track import parse_query, subject_of
from scripts.benchmarks.measuring import Finding, Size

QUERIES = 100_000
MATCHES = 50
MOST_MICROSECONDS = 1_000.0
MOST_GROWTH = 2.0

_SEED = 2_718
_VOCABULARY = 50_000
_ENTRY_WORDS = 400
_HOSTS = 5_000
_TRAINING = 2_000
_ENTRIES = 200
_CONSONANTS = "bcdfghjklmnprstvwz"
_VOWELS = "aeiou"


async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
    """CPU of making an entry ready and finding its queries; both sides take turns."""
    chance = random.Random(_SEED)  # noqa: S311
    shares = WordShares()
    for _ in range(size.pick(_TRAINING, _TRAINING, 100)):
        shares.observe(set(_spoken(_ENTRY_WORDS, chance)))
    queries = size.pick(QUERIES, QUERIES, QUERIES // 20)
    many = _index(queries, shares, chance)
    few = _index(queries // 10, shares, chance)
    entries = [_entry(chance) for _ in range(size.pick(_ENTRIES, _ENTRIES, 10))]
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(size.pick(15, 3, 1)):
        times[0].append(_microseconds(many, entries))
        times[1].append(_microseconds(few, entries))
    hub, floor = median(times[0]), median(times[1])
    ratio = median(map(float.__truediv__, *times))
    matches = [_matches(index, entries) for index in (many, few)]
    yield Finding(
        bench="track",
        measure=f"CPU us per entry, {queries:,} queries",
        hub=hub,
        target=f"<= {MOST_MICROSECONDS:,.0f}",
        met=hub <= MOST_MICROSECONDS,
    )
    yield Finding(
        bench="track",
        measure=f"the same, to {queries // 10:,} queries",
        hub=hub,
        floor=floor,
        ratio=ratio,
        target=f"<= {MOST_GROWTH:g} x",
        met=ratio <= MOST_GROWTH,
    )
    yield Finding(
        bench="track", measure="queries matched", hub=matches[0], floor=matches[1]
    )


def _microseconds(index: QueryIndex[int], entries: Sequence[Entry]) -> float:
    started = time.process_time()
    _matches(index, entries)
    return (time.process_time() - started) / len(entries) * 1e6


def _matches(index: QueryIndex[int], entries: Sequence[Entry]) -> float:
    feed, url = Feed(), "https://feeds.example/all"
    found = (
        len(index.matches(subject_of(each, feed, feed_url=url))) for each in entries
    )
    return sum(found) / len(entries)


def _word(rank: int) -> str:
    """Another word for each rank, of one syllable or several."""
    syllables = []
    while True:
        rank, part = divmod(rank, len(_CONSONANTS) * len(_VOWELS))
        vowel, consonant = divmod(part, len(_CONSONANTS))
        syllables.append(_CONSONANTS[consonant] + _VOWELS[vowel])
        if not rank:
            return "".join(syllables)


_WORDS = [_word(rank) for rank in range(_VOCABULARY)]
_WEIGHTS = [1 / (rank + 3) for rank in range(_VOCABULARY)]
_SUMS = [*accumulate(_WEIGHTS)]
_SHARES = [1 - (1 - weight / _SUMS[-1]) ** _ENTRY_WORDS for weight in _WEIGHTS]
"""Of entries that have the word of a rank."""


def _spoken(count: int, chance: random.Random) -> list[str]:
    return chance.choices(_WORDS, cum_weights=_SUMS, k=count)


def _entry(chance: random.Random) -> Entry:
    words = _spoken(_ENTRY_WORDS, chance)
    link = f'<a href="https://host{chance.randrange(_HOSTS)}.example/page">there</a>'
    paragraphs = (" ".join(words[at : at + 40]) for at in range(0, len(words), 40))
    body = "".join(f"<p>{paragraph} {link}</p>" for paragraph in paragraphs)
    page = f"https://host{chance.randrange(_HOSTS)}.example/page"
    return Entry(
        key=page,
        id=page,
        title=" ".join(words[:6]).title(),
        content=Text(value=body),
        links=(Link(href=page),),
    )


def _index(count: int, shares: WordShares, chance: random.Random) -> QueryIndex[int]:
    index: QueryIndex[int] = QueryIndex(shares.share_of)
    asked_for = _AskedFor(count // 2, chance)
    for name in range(count):
        index.add(name, parse_query(_query(asked_for, chance)))
    return index


class _AskedFor:
    """Words that are asked for: nobody asks for the very commonest. How many of those
    are left out decides how many queries an entry matches."""

    def __init__(self, queries: int, chance: random.Random) -> None:
        self._first = bisect(
            range(_VOCABULARY - 1),
            -float(MATCHES),
            key=lambda rank: -_matched(rank, queries),
        )
        self._chance = chance

    def __call__(self) -> str:
        below = _SUMS[self._first - 1] if self._first else 0.0
        return _WORDS[bisect(_SUMS, self._chance.uniform(below, _SUMS[-1] - 1e-9))]


def _matched(first: int, queries: int) -> float:
    """Of so many words, asked for by their weight from a rank on, how many match."""
    weights = _WEIGHTS[first:]
    hits = sum(map(float.__mul__, weights, _SHARES[first:]))
    return queries * hits / sum(weights)


def _query(asked_for: Callable[[], str], chance: random.Random) -> str:
    """Half words, a fifth phrases, 15 % hosts, 15 % groups and negations."""
    kind = chance.random()
    if kind < 0.5:
        return asked_for()
    if kind < 0.7:
        return f'"{_spoken(1, chance)[0]} {asked_for()}"'
    if kind < 0.85:
        flag = chance.choice(("site", "link"))
        return f"{flag}:host{chance.randrange(_HOSTS)}.example"
    common, unwanted = _spoken(2, chance)
    return f"({asked_for()} | {asked_for()}) {common} -{unwanted}"
