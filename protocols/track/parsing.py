"""Parse track queries: terms separated by blanks must all match, ``|`` separates
alternatives.

The grammar::

    any    = all *("|" all)
    all    = member *(["+"] member)
    member = "-" member / "(" any ")" / phrase / flag / word
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import Final

from protocols.track.query import (
    All,
    AnyOf,
    Language,
    Leaf,
    LinkTo,
    Member,
    Popularity,
    PopularityComparison,
    Query,
    QueryError,
    SiteTerm,
    Words,
    is_positive,
)
from protocols.track.subject import address_of
from protocols.track.words import folded, words_of


class QueryMark(StrEnum):
    OPEN = "("
    CLOSE = ")"
    OR = "|"
    AND = "+"
    NOT = "-"
    QUOTED = "a phrase"
    WORD = "a word"
    FLAG = "a flag"
    END = "the end"


@dataclass(frozen=True, slots=True)
class QueryToken:
    """``position`` counts characters from 1; ``name`` is that of a flag."""

    mark: QueryMark
    position: int
    text: str = ""
    name: str = ""


FLAGS: Final = "site:, link:, language:, popularity:, porn:ok and bozo:ok"

_SPACE: Final = re.compile(r"\s*")
_MARKS: Final = {
    str(mark): mark for mark in (QueryMark.OPEN, QueryMark.CLOSE, QueryMark.OR)
}
_SIGNS: Final = {str(mark): mark for mark in (QueryMark.AND, QueryMark.NOT)}
_FLAG: Final = re.compile(
    r"(site|link|language|porn|bozo|popularity)(?::|(?<=popularity)(?=[<>]))",
    re.IGNORECASE,
)
# No word is written like this: it is an unknown flag, such as "velocity:>5".
_COMPARISON: Final = re.compile(r"[a-z_]+:[<>]", re.IGNORECASE)
# "a+b" is two words, but the pluses of "c++" belong to the word.
_WORD: Final = re.compile(r"""[^\s()|"+]+(?:\++(?=[\s()|"]|\Z))?""")
_QUOTED: Final = re.compile(r'"([^"]*)"')
_VALUE: Final = re.compile(r"""[^\s()|"]*""")


def tokens_of(query: str) -> Iterator[QueryToken]:
    """The tokens of a query.

    Raises `QueryError` for quotes that are not closed, and comparisons of unknown
    flags.
    """
    place = _end_of(_SPACE, query, 0)
    while place < len(query):
        token, place = _next_token(query, place)
        yield token
        place = _end_of(_SPACE, query, place)
    yield QueryToken(QueryMark.END, place + 1)


def _next_token(query: str, place: int) -> tuple[QueryToken, int]:
    character, position = query[place], place + 1
    mark = _MARKS.get(character) or _SIGNS.get(character)
    if mark:
        return QueryToken(mark, position), place + 1
    if character == '"':
        text, end = _quoted(query, place)
        return QueryToken(QueryMark.QUOTED, position, text), end
    flag = _FLAG.match(query, place)
    if flag:
        text, end = _value(query, flag.end())
        return QueryToken(QueryMark.FLAG, position, text, flag[1].lower()), end
    if _COMPARISON.match(query, place):
        raise QueryError(position, "one of the flags " + FLAGS, query[place:])
    end = _end_of(_WORD, query, place)
    return QueryToken(QueryMark.WORD, position, query[place:end]), end


def _quoted(query: str, place: int) -> tuple[str, int]:
    match = _QUOTED.match(query, place)
    if match is None:
        raise QueryError(place + 1, "a closing quote", query[place:])
    return match[1], match.end()


def _value(query: str, start: int) -> tuple[str, int]:
    """A flag's value; parentheses that open inside it, as in URLs, belong to it."""
    if query.startswith('"', start):
        return _quoted(query, start)
    end = _end_of(_VALUE, query, start)
    while query.startswith("(", end) and end > start:
        closing = _end_of(_VALUE, query, end + 1)
        if not query.startswith(")", closing):
            break
        end = _end_of(_VALUE, query, closing + 1)
    return query[start:end], end


def _end_of(pattern: re.Pattern[str], query: str, place: int) -> int:
    match = pattern.match(query, place)
    return match.end() if match else place


LONGEST_QUERY: Final = 2_048
MOST_MEMBERS: Final = 100
MOST_DEPTH: Final = 20

_ENDS: Final = frozenset({QueryMark.OR, QueryMark.CLOSE, QueryMark.END})
_MEMBER: Final = "a word, a phrase in quotes, a flag or a group"
_HOST: Final = re.compile(r"[^\s/?#@:]+")
_NUMBER: Final = re.compile(r"(<=|>=|<|>)\s*(\d+(?:\.\d*)?|\.\d+)")
_CODE: Final = re.compile(r"[a-z]{2}(?:[-_][a-z0-9]+)*", re.IGNORECASE)


def parse_query(text: str) -> Query:
    """Parse a query. Raises `QueryError`, which says where and what was expected."""
    if len(text) > LONGEST_QUERY:
        raise QueryError(
            LONGEST_QUERY + 1, f"the end, after at most {LONGEST_QUERY} characters,"
        )
    return _Parser(text).query()


class _Parser:
    """The state of parsing one query."""

    def __init__(self, text: str) -> None:
        self._tokens: Iterator[QueryToken] = tokens_of(text)
        self._token = next(self._tokens)
        self._members = 0
        self._allowed: set[str] = set()

    def query(self) -> Query:
        root = self._any(depth=0)
        if self._token.mark is not QueryMark.END:
            raise self._unexpected(
                "the end of the query, or an opening parenthesis before this"
            )
        if root is None or not is_positive(root):
            raise QueryError(1, "a word that must match, in every alternative,")
        return Query(
            root=root,
            allows_porn="porn" in self._allowed,
            allows_bozo="bozo" in self._allowed,
        )

    def _any(self, depth: int) -> Member | None:
        """Alternatives; ``None`` if they contain only ``porn:ok`` or ``bozo:ok``."""
        if depth > MOST_DEPTH:
            raise self._unexpected(f"at most {MOST_DEPTH} nested groups")
        members = [self._all(depth)]
        while self._token.mark is QueryMark.OR:
            self._advance()
            members.append(self._all(depth))
        wanted = [member for member in members if member]
        return _one_or(AnyOf, wanted)

    def _all(self, depth: int) -> Member | None:
        members: list[Member] = []
        is_first = True
        given: set[str] = set()
        while is_first or self._token.mark not in _ENDS:
            if self._token.mark is QueryMark.AND and not is_first:
                self._advance()
            position = self._token.position
            member = self._member(depth)
            is_first = False
            if member:
                _check_single(member, given, position)
                members.append(member)
        return _one_or(All, members)

    def _member(self, depth: int) -> Member | None:
        token = self._token
        self._count()
        if token.mark is QueryMark.NOT:
            self._advance()
            return self._negated(depth + 1)
        if token.mark is QueryMark.OPEN:
            return self._group(depth)
        if token.mark in (QueryMark.WORD, QueryMark.QUOTED):
            self._advance()
            return _words(token)
        if token.mark is QueryMark.FLAG:
            self._advance()
            return self._flag(token)
        raise self._unexpected(_MEMBER)

    def _negated(self, depth: int) -> Member | None:
        if depth > MOST_DEPTH:
            raise self._unexpected(f"at most {MOST_DEPTH} nested negations")
        position = self._token.position
        member = self._member(depth)
        if member is None:
            raise QueryError(position, "a word, phrase or group after the minus")
        return member.inverse()

    def _group(self, depth: int) -> Member | None:
        self._advance()
        member = self._any(depth + 1)
        if self._token.mark is not QueryMark.CLOSE:
            raise self._unexpected("a closing parenthesis")
        self._advance()
        return member

    def _flag(self, token: QueryToken) -> Member | None:
        if token.name in ("porn", "bozo"):
            if token.text.lower() != "ok":
                raise QueryError(token.position, f"{token.name}:ok", token.text)
            self._allowed.add(token.name)
            return None
        return _FLAGS[token.name](token)

    def _count(self) -> None:
        self._members += 1
        if self._members > MOST_MEMBERS:
            raise self._unexpected(f"at most {MOST_MEMBERS} terms")

    def _advance(self) -> None:
        self._token = next(self._tokens)

    def _unexpected(self, expected: str) -> QueryError:
        token = self._token
        return QueryError(token.position, expected, token.text or token.mark)


def _one_or(kind: type[All | AnyOf], members: list[Member]) -> Member | None:
    if len(members) < 2:
        return members[0] if members else None
    parts = (each.members if isinstance(each, kind) else (each,) for each in members)
    return kind(tuple(chain.from_iterable(parts)))


def _check_single(member: Member, given: set[str], position: int) -> None:
    """Refuse a second term of a kind of which an entry can match only one."""
    if isinstance(member, SiteTerm | LinkTo | Language) and not member.is_negated:
        name = str(member).partition(":")[0]
    elif isinstance(member, Popularity):
        name = "popularity"
    else:
        return
    if name in given:
        raise QueryError(position, f"no second {name}:", str(member))
    given.add(name)


def _words(token: QueryToken) -> Words:
    is_exact = token.mark is QueryMark.QUOTED
    words = words_of(token.text)
    if not is_exact:
        words = [folded(word) for word in words]
    if not words:
        raise QueryError(token.position, "a letter or a digit", token.text)
    return Words(tuple(words), is_exact)


def _site(token: QueryToken) -> SiteTerm:
    return SiteTerm(_host(token, address_of(token.text)[0]))


def _link(token: QueryToken) -> LinkTo:
    host, path = address_of(token.text)
    if host:
        return LinkTo(f"{host}{path or '/'}")
    host, slash, _ = token.text.partition("/")
    if slash and _HOST.fullmatch(host):
        host, path = address_of(f"http://{token.text}")
        return LinkTo(f"{host}{path or '/'}")
    return LinkTo(_host(token, ""))


def _host(token: QueryToken, host: str) -> str:
    if not host and _HOST.fullmatch(token.text):
        host = address_of(f"http://{token.text}")[0]
    if not host:
        expected = "a host" if token.name == "site" else "a URL or a host"
        raise QueryError(token.position, f"{expected} after {token.name}:", token.text)
    return host


def _language(token: QueryToken) -> Language:
    if _CODE.fullmatch(token.text) is None:
        raise QueryError(
            token.position, "two letters (ISO 639-1) after language:", token.text
        )
    return Language(token.text[:2].lower())


def _popularity(token: QueryToken) -> Popularity:
    match = _NUMBER.fullmatch(token.text)
    if match is None:
        raise QueryError(
            token.position, "<, <=, > or >= and a number after popularity:", token.text
        )
    return Popularity(PopularityComparison(match[1]), float(match[2]))


_FLAGS: Final[Mapping[str, Callable[[QueryToken], Leaf]]] = {
    "language": _language,
    "link": _link,
    "popularity": _popularity,
    "site": _site,
}
