"""The marks and members that a track query is written with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from protocols.track.query import QueryError


class Mark(StrEnum):
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
class Token:
    """``position`` counts characters from 1; ``name`` is that of a flag."""

    mark: Mark
    position: int
    text: str = ""
    name: str = ""


FLAGS: Final = "site:, link:, language:, popularity:, porn:ok and bozo:ok"

_SPACE: Final = re.compile(r"\s*")
_MARKS: Final = {str(mark): mark for mark in (Mark.OPEN, Mark.CLOSE, Mark.OR)}
_SIGNS: Final = {str(mark): mark for mark in (Mark.AND, Mark.NOT)}
_FLAG: Final = re.compile(
    r"(site|link|language|porn|bozo|popularity)(?::|(?<=popularity)(?=[<>]))",
    re.IGNORECASE,
)
# No word is written so: a flag that there is none of, such as "velocity:>5".
_COMPARISON: Final = re.compile(r"[a-z_]+:[<>]", re.IGNORECASE)
# "a+b" is two words, the pluses of "c++" are part of one.
_WORD: Final = re.compile(r"""[^\s()|"+]+(?:\++(?=[\s()|"]|\Z))?""")
_QUOTED: Final = re.compile(r'"([^"]*)"')
_VALUE: Final = re.compile(r"""[^\s()|"]*""")


def tokens_of(query: str) -> Iterator[Token]:
    """Raises `QueryError` for quotes that do not end, and comparisons of no flag."""
    place = _end_of(_SPACE, query, 0)
    while place < len(query):
        token, place = _next_token(query, place)
        yield token
        place = _end_of(_SPACE, query, place)
    yield Token(Mark.END, place + 1)


def _next_token(query: str, place: int) -> tuple[Token, int]:
    character, position = query[place], place + 1
    mark = _MARKS.get(character) or _SIGNS.get(character)
    if mark:
        return Token(mark, position), place + 1
    if character == '"':
        text, end = _quoted(query, place)
        return Token(Mark.QUOTED, position, text), end
    flag = _FLAG.match(query, place)
    if flag:
        text, end = _value(query, flag.end())
        return Token(Mark.FLAG, position, text, flag[1].lower()), end
    if _COMPARISON.match(query, place):
        raise QueryError(position, "one of the flags " + FLAGS, query[place:])
    end = _end_of(_WORD, query, place)
    return Token(Mark.WORD, position, query[place:end]), end


def _quoted(query: str, place: int) -> tuple[str, int]:
    match = _QUOTED.match(query, place)
    if match is None:
        raise QueryError(place + 1, "a closing quote for the one", query[place:])
    return match[1], match.end()


def _value(query: str, start: int) -> tuple[str, int]:
    """A flag's value; parentheses that are opened in it, as in URLs, belong to it."""
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
