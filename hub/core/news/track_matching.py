"""Which of very many track queries an entry matches.

Each query is stored under keys, at least one of which occurs in every match: the rarest
ones that it requires. All of an entry's few hundred keys are looked up, and only the
queries found there are matched; the number of other queries costs nothing. How common
words are is learned from passing entries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Set
from itertools import pairwise
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from protocols.track.query import (
    All,
    AnyOf,
    Language,
    LinkTo,
    Member,
    Query,
    SiteTerm,
    Words,
)
from protocols.track.subject import ANY_KEY, Subject, language_key, link_key, site_key
from protocols.track.words import folded

Name = TypeVar("Name", bound=Hashable)
"""The type of the names of queries."""
Candidate: TypeAlias = tuple[Name, Query, Member | None]
"""A query with its name, and the condition that is left to check."""
Share = Callable[[str], float]
"""For a word, the share of all entries that contain it, 0 to 1."""

_SITE_SHARE = 0.001
_LANGUAGE_SHARE = 0.3


class _Requirement(NamedTuple):
    """Every match has one of the keys; ``share`` of all entries have one, too."""

    share: float
    keys: frozenset[str]


class QueryIndex(Generic[Name]):
    """Queries by the names that they are added under. Not for several threads."""

    def __init__(self, share_of: Share) -> None:
        self._share_of = share_of
        self._queries: dict[Name, tuple[Query, tuple[str, ...]]] = {}
        # None: the query matches wherever its key is, nothing is left to check.
        self._waiting: dict[str, dict[Name, Member | None]] = {}

    def __len__(self) -> int:
        return len(self._queries)

    @property
    def names(self) -> Set[Name]:
        return self._queries.keys()

    def add(self, name: Name, query: Query) -> None:
        """Add a query, or replace the one with its name."""
        self.remove(name)
        keys = _requirement(query.root, self._share_of).keys
        self._queries[name] = query, tuple(keys)  # the collector would walk over a set
        rest = None if _is_one_word(query.root) else query.root
        for key in keys:
            self._waiting.setdefault(key, {})[name] = rest

    def remove(self, name: Name) -> None:
        """Remove a query, if it is there."""
        if name not in self._queries:
            return
        _, keys = self._queries.pop(name)
        for key in keys:
            waiting = self._waiting[key]
            del waiting[name]
            if not waiting:
                del self._waiting[key]

    def keys_of(self, name: Name) -> frozenset[str]:
        """The keys a query is stored under; none if it is not there."""
        return frozenset(self._queries[name][1] if name in self._queries else ())

    def matches(self, subject: Subject) -> set[Name]:
        """The names of all queries that the entry matches."""
        return matching_names(subject, self.candidates(subject))

    def candidates(self, subject: Subject) -> list[Candidate[Name]]:
        """The queries stored under keys of the entry; some of them twice."""
        return [
            (name, self._queries[name][0], rest)
            for key in subject.keys & self._waiting.keys()
            for name, rest in self._waiting[key].items()
        ]


def matching_names(
    subject: Subject, candidates: Iterable[Candidate[Name]]
) -> set[Name]:
    """The names of the candidates that the entry matches. It may take long."""
    return {
        name
        for name, query, rest in candidates
        if (rest is None or rest.matches(subject)) and query.admits(subject)
    }


def _is_one_word(member: Member) -> bool:
    """Whether a query is one word in any case: its key alone decides."""
    return isinstance(member, Words) and len(member.words) == 1 and not member.is_exact


def _requirement(member: Member, share_of: Share) -> _Requirement:
    """The rarest keys that every match has; a share above 1: nothing is required."""
    if isinstance(member, All):
        members = (_requirement(each, share_of) for each in member.members)
        return min(members, key=lambda each: each.share)
    if isinstance(member, AnyOf):
        return _union(_requirement(each, share_of) for each in member.members)
    if member.is_negated:
        return _Requirement(2.0, frozenset({ANY_KEY}))
    if isinstance(member, Words):
        return _rarest(member, share_of)
    if isinstance(member, SiteTerm):
        return _Requirement(_SITE_SHARE, frozenset({site_key(member.host)}))
    if isinstance(member, LinkTo):
        return _Requirement(_SITE_SHARE, frozenset({link_key(member.place)}))
    if isinstance(member, Language):
        return _Requirement(_LANGUAGE_SHARE, frozenset({language_key(member.code)}))
    return _Requirement(1.0, frozenset({ANY_KEY}))  # of popularity alone


def _union(requirements: Iterable[_Requirement]) -> _Requirement:
    shares, keys = zip(*requirements, strict=True)
    return _Requirement(sum(shares), frozenset().union(*keys))


def _rarest(words: Words, share_of: Share) -> _Requirement:
    """A word, or of a phrase the two neighbours that are rarest as a pair."""
    plain = [folded(word) for word in words.words]
    if len(plain) == 1:
        return _Requirement(share_of(plain[0]), frozenset(plain))
    share, first, second = min(
        (share_of(first) * share_of(second), first, second)
        for first, second in pairwise(plain)
    )
    return _Requirement(share, frozenset({f"{first} {second}"}))


MOST_WORDS = 100_000
"""The most words counted; beyond that, old and rare ones are forgotten."""

_PRIOR_ENTRIES = 20.0
"""The counts start as if so many entries had been seen, in which short words are common
and long ones rare."""
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
        """The share of entries that have a word, from 0 to 1; guessed by its length if
        it was never seen."""
        guess = 2.0 ** -min(len(word), _LONGEST_COMMON)
        entries = self._entries + _PRIOR_ENTRIES
        return (self._counts[word] + _PRIOR_ENTRIES * guess) / entries

    def _forget(self) -> None:
        """Halve all counts: a word that was seen once, long ago, is gone."""
        self._entries /= 2
        halves = ((word, count // 2) for word, count in self._counts.items())
        self._counts = Counter({word: count for word, count in halves if count})
