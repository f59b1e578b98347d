"""A parsed track query: what must match, and what must not.

Only leaves are negated: ``-(a b)`` is read as ``-a | -b``. There may be a hundred
thousand queries in memory; they have no reference cycles, and the garbage collector
does not track them.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from enum import StrEnum
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from protocols.protocol_errors import InvalidValue
from protocols.track.subject import Subject

_PLAIN_VALUE: Final = re.compile(r"[^\s()|]+(?:\([^\s()|]*\)[^\s()|]*)*")

MOST_PORN: Final = 0.2
"""Feeds of a higher ``porn_rank`` are left out, unless the query says ``porn:ok``."""
MOST_BOZO: Final = 0.3
"""The same with ``bozo_rank`` and ``bozo:ok``."""


class QueryError(InvalidValue):
    """A query that cannot be read; ``position`` counts characters from 1."""

    def __init__(self, position: int, expected: str, found: str = "") -> None:
        super().__init__("query", expected, found)
        self.position = position
        shown = f", not {found[:80]!r}" if found else ""
        self.args = (f"query: expected {expected} at character {position}{shown}",)


class PopularityComparison(StrEnum):
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="

    @property
    def inverse(self) -> PopularityComparison:
        return _INVERSES[self]

    def holds(self, left: float, right: float) -> bool:
        return _HOLDS[self](left, right)


_INVERSES: Final = {
    PopularityComparison.LESS: PopularityComparison.AT_LEAST,
    PopularityComparison.AT_MOST: PopularityComparison.MORE,
    PopularityComparison.MORE: PopularityComparison.AT_MOST,
    PopularityComparison.AT_LEAST: PopularityComparison.LESS,
}
_HOLDS: Final[dict[PopularityComparison, Callable[[float, float], bool]]] = {
    PopularityComparison.LESS: operator.lt,
    PopularityComparison.AT_MOST: operator.le,
    PopularityComparison.MORE: operator.gt,
    PopularityComparison.AT_LEAST: operator.ge,
}


class Words(Struct, frozen=True, gc=False):
    """Consecutive words; with ``is_exact``, from quotes, their case matters."""

    words: tuple[str, ...]
    is_exact: bool = False
    is_negated: bool = False

    def matches(self, subject: Subject) -> bool:
        return self._is_in(subject) is not self.is_negated

    def _is_in(self, subject: Subject) -> bool:
        if len(self.words) == 1:
            known = subject.exact_words if self.is_exact else subject.words
            return self.words[0] in known
        text = subject.exact_text if self.is_exact else subject.text
        return f" {' '.join(self.words)} " in text

    def inverse(self) -> Words:
        return replace(self, is_negated=not self.is_negated)

    def __str__(self) -> str:
        words = " ".join(self.words)
        quoted = f'"{words}"' if self.is_exact else words.replace(" ", "-")
        return _signed(quoted, self.is_negated)


class SiteTerm(Struct, frozen=True, gc=False):
    """Published at a host or one of its subdomains."""

    host: str
    is_negated: bool = False

    def matches(self, subject: Subject) -> bool:
        return (self.host in subject.hosts) is not self.is_negated

    def inverse(self) -> SiteTerm:
        return replace(self, is_negated=not self.is_negated)

    def __str__(self) -> str:
        return _signed(f"site:{_value(self.host)}", self.is_negated)


class LinkTo(Struct, frozen=True, gc=False):
    """Links to a page, ``host/path``, or to any page of a host."""

    place: str
    is_negated: bool = False

    def matches(self, subject: Subject) -> bool:
        return (self.place in subject.links) is not self.is_negated

    def inverse(self) -> LinkTo:
        return replace(self, is_negated=not self.is_negated)

    def __str__(self) -> str:
        return _signed(f"link:{_value(self.place)}", self.is_negated)


class Language(Struct, frozen=True, gc=False):
    """In a language. If an entry's language is unknown, neither ``language:`` nor
    ``-language:`` matches.
    """

    code: str
    is_negated: bool = False

    def matches(self, subject: Subject) -> bool:
        known = subject.language
        return bool(known) and (known == self.code) is not self.is_negated

    def inverse(self) -> Language:
        return replace(self, is_negated=not self.is_negated)

    def __str__(self) -> str:
        return _signed(f"language:{self.code}", self.is_negated)


class Popularity(Struct, frozen=True, gc=False):
    comparison: PopularityComparison
    number: float

    @property
    def is_negated(self) -> bool:
        return False

    def matches(self, subject: Subject) -> bool:
        return self.comparison.holds(subject.popularity, self.number)

    def inverse(self) -> Popularity:
        return Popularity(self.comparison.inverse, self.number)

    def __str__(self) -> str:
        number = repr(self.number).removesuffix(".0")
        return f"popularity:{self.comparison}{number}"


class All(Struct, frozen=True, gc=False):
    """Every member holds."""

    members: tuple[Member, ...]

    def matches(self, subject: Subject) -> bool:
        for member in self.members:  # noqa: SIM110  a generator costs half as much again
            if not member.matches(subject):
                return False
        return True

    def inverse(self) -> AnyOf:
        return AnyOf(tuple(member.inverse() for member in self.members))

    def __str__(self) -> str:
        return " ".join(map(_grouped, self.members))


class AnyOf(Struct, frozen=True, gc=False):
    """At least one member holds."""

    members: tuple[Member, ...]

    def matches(self, subject: Subject) -> bool:
        for member in self.members:  # noqa: SIM110
            if member.matches(subject):
                return True
        return False

    def inverse(self) -> All:
        return All(tuple(member.inverse() for member in self.members))

    def __str__(self) -> str:
        return " | ".join(map(str, self.members))


Leaf: TypeAlias = Words | SiteTerm | LinkTo | Language | Popularity
Member: TypeAlias = Leaf | All | AnyOf


class Query(Struct, frozen=True, kw_only=True, gc=False):
    """A query for entries. ``str()`` writes it as it was understood."""

    root: Member
    allows_porn: bool = False
    allows_bozo: bool = False

    def matches(self, subject: Subject) -> bool:
        return self.admits(subject) and self.root.matches(subject)

    def admits(self, subject: Subject) -> bool:
        """Whether the ranks of the entry's feed are low enough for the query."""
        is_decent = self.allows_porn or subject.porn_rank <= MOST_PORN
        return is_decent and (self.allows_bozo or subject.bozo_rank <= MOST_BOZO)

    def __str__(self) -> str:
        flags = " porn:ok" * self.allows_porn + " bozo:ok" * self.allows_bozo
        return (_grouped(self.root) if flags else str(self.root)) + flags


def is_positive(member: Member) -> bool:
    """Whether a term asks for something: a query of negations alone does not.

    ``-language:`` counts as well, since Superfeedr documents it as a query.
    """
    if isinstance(member, All):
        return any(map(is_positive, member.members))
    if isinstance(member, AnyOf):
        return all(map(is_positive, member.members))
    return isinstance(member, Language) or not member.is_negated


def canonical(query: Query) -> str:
    """The same text for queries that differ only in spelling and order.

    It may not be parseable as a query, being too long.
    """
    return str(replace(query, root=_in_order(query.root)))


def _in_order(member: Member) -> Member:
    """The member with those of each group sorted by text, each once."""
    if not isinstance(member, All | AnyOf):
        return member
    parts = {str(part): part for part in map(_in_order, member.members)}
    ordered = tuple(parts[text] for text in sorted(parts))
    return type(member)(ordered) if len(ordered) > 1 else ordered[0]


def _value(text: str) -> str:
    """A flag's value, in quotes if it would otherwise end early."""
    return text if _PLAIN_VALUE.fullmatch(text) else f'"{text}"'


def _grouped(member: Member) -> str:
    return f"({member})" if isinstance(member, AnyOf) else str(member)


def _signed(text: str, is_negated: bool) -> str:
    return f"-{text}" if is_negated else text
