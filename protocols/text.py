"""Text as feeds carry it: white space, titles with markup, numbers."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Final

LONGEST_PIECE: Final = 256 * 1024
"""Characters of a long text that one call of a built-in function gets.

No other thread runs during such a call, and ten million characters take 0.1 seconds.
"""

_SPACES = re.compile(r"[ \t\r\n\f\v]+")
# Neither quantifier can pass the next "<", so that no input takes quadratic time.
_TAG = re.compile(r"<[a-zA-Z/!?][^<>]*>")
_INLINE = (
    "a|abbr|b|big|br|cite|code|del|em|font|h[1-6]|i|img|ins|kbd|mark|p|q|s|small|span"
    "|strike|strong|sub|sup|tt|u|wbr"
)
_INLINE_TAG = re.compile(rf"</?(?:{_INLINE})(?:\s[^<>]*)?/?>", re.IGNORECASE)
_MARKUP = re.compile(rf"</(?:{_INLINE})\s*>|<(?:br|img|wbr)\b[^<>]*>", re.IGNORECASE)
_LARGEST = 2**63 - 1


def collapse(text: str) -> str:
    """Trim a text, and make each run of white space one space; no-break spaces stay."""
    if "  " not in text and text.isprintable():  # all white space is single spaces
        return text.strip()
    return _SPACES.sub(" ", text).strip()


def text_of_html(markup: str) -> str:
    """The text of a piece of HTML, on one line."""
    if "<" in markup:
        markup = _TAG.sub("", markup)
    if "&" in markup:
        markup = html.unescape(markup)
    return collapse(markup)


def text_of_title(title: str) -> str:
    """The text of a title, in a format that does not say whether titles are HTML.

    Character references are decoded. Tags are removed only if one is closed, or is of a
    kind that needs no closing: "The <b> tag" is a title, "<b>New</b>" is markup.
    """
    if "<" in title and _MARKUP.search(title):
        title = _INLINE_TAG.sub("", title)
    if "&" in title:
        title = html.unescape(title)
    return collapse(title)


def whole_number(text: str | None) -> int | None:
    """A number from 0 to 2**63 - 1, as in ``length`` attributes; None for other
    texts.
    """
    digits = (text or "").strip()
    if not digits.isascii() or not digits.isdigit() or len(digits) > 19:
        return None
    number = int(digits)
    return number if number <= _LARGEST else None


def single_spaced(text: str) -> str:
    """The words of a text separated by single blanks; processed piece by piece."""
    parts: list[str] = []
    is_apart = False
    for start in range(0, len(text), LONGEST_PIECE):
        piece = text[start : start + LONGEST_PIECE]
        words = piece.split()
        is_apart = is_apart or piece[0].isspace()
        if words:
            if parts and is_apart:
                parts.append(" ")
            parts.append(" ".join(words))
            is_apart = False
        is_apart = is_apart or piece[-1].isspace()
    return "".join(parts)


def pieces_of_markup(markup: str, longest: int = LONGEST_PIECE) -> Iterator[str]:
    """Split markup into pieces that end before a tag, unless a tag is longer than a
    piece.
    """
    start = 0
    while len(markup) - start > longest:
        end = markup.rfind("<", start + 1, start + longest)
        end = start + longest if end < 0 else end
        yield markup[start:end]
        start = end
    yield markup[start:]
