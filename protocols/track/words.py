"""Split text into words, in the same way for queries and entries."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from typing import Final

MOST_CHARACTERS: Final = 64 * 1024
"""Characters of a text that are read: however long an entry is, looking at its words
must take only milliseconds.
"""
MOST_MARKUP: Final = 512 * 1024
"""Characters of HTML that are searched for text. A tag, a script or a comment counts as
at most one piece of 64 Ki, since tags may hold pictures of many millions.
"""
_PIECE: Final = 64 * 1024
_LONGEST_END: Final = 64
_SPACED = {code: " " for code in range(128) if not re.match(r"\w", chr(code))}
_WORD = re.compile(r"\w+")
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Kana, Han
)
_CHARACTER = re.compile(f"[{_UNSPACED}]|[^{_UNSPACED}]+")
_HAS_UNSPACED = re.compile(f"[{_UNSPACED}]")
# No quantifier can pass the next "<", so that no input takes quadratic time.
_INLINE_TAG = re.compile(
    r"</?(?:a|abbr|b|big|cite|code|del|em|font|i|ins|kbd|mark|q|s|small|span|strike"
    r"|strong|sub|sup|tt|u|wbr)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_TAG = re.compile(r"<[a-zA-Z/!?][^<>]*>")
_TAG_BEGINS = re.compile(r"<[a-zA-Z/!?]")
_UNSPOKEN = re.compile(r"<!--|<script\b|<style\b", re.IGNORECASE)
_ENDS = {
    "<!--": re.compile("-->"),
    "<script": re.compile(r"</script\s*>", re.IGNORECASE),
    "<style": re.compile(r"</style\s*>", re.IGNORECASE),
}


def words_of(text: str) -> list[str]:
    """The words of a text in its own case; punctuation separates and is dropped.

    In scripts that are written without spaces each character is a word, so that a word
    in them is a phrase.
    """
    if text.isascii():
        return text.translate(_SPACED).split()
    text = unicodedata.normalize("NFKC", text)
    words = _WORD.findall(text)
    if _HAS_UNSPACED.search(text) is None:
        return words
    return [part for word in words for part in _CHARACTER.findall(word)]


def folded(word: str) -> str:
    """A word of `words_of` with the difference of upper and lower case removed."""
    if word.isascii():
        return word.lower()
    return unicodedata.normalize("NFKC", word.casefold())


def folded_words(words: list[str]) -> list[str]:
    """Like `folded`, for all of them."""
    text = " ".join(words)
    return text.lower().split() if text.isascii() else [*map(folded, words)]


def spoken_text(markup: str) -> str:
    """The text of a piece of HTML; blocks end words, inline elements do not.

    Of long HTML it is the first `MOST_CHARACTERS` of text, or the text in
    `MOST_MARKUP`.
    """
    parts = []
    room = MOST_CHARACTERS
    for piece in _spoken_pieces(markup):
        if "<" in piece:
            piece = _TAG.sub(" ", _INLINE_TAG.sub("", piece))
        text = html.unescape(piece) if "&" in piece else piece
        parts.append(text[:room])
        room -= len(text)
        if room <= 0:
            break
    return "".join(parts)


def _spoken_pieces(markup: str) -> Iterator[str]:
    """Pieces without comments, scripts and styles, and without tags longer than a
    piece.

    A comment, script or style without an end lasts to the end of the text. Pieces end
    before a tag where possible.
    """
    place, room = 0, MOST_MARKUP
    while place < len(markup) and room > 0:
        begun = place
        unspoken = _UNSPOKEN.search(markup, place, place + _PIECE)
        if unspoken is not None:
            yield markup[place : unspoken.start()] + " "
            place = _end_of(_ENDS[unspoken[0].lower()], markup, unspoken.end())
        elif len(markup) - place <= _PIECE:
            yield markup[place:]
            return
        elif (cut := markup.rfind("<", place, place + _PIECE)) > place:
            yield markup[place:cut]
            place = cut
        elif cut == place and _TAG_BEGINS.match(markup, place):
            yield " "
            place = markup.find(">", place) + 1 or len(markup)
        else:
            yield markup[place : place + _PIECE]
            place += _PIECE
        room -= min(place - begun, _PIECE)


def _end_of(end: re.Pattern[str], markup: str, place: int) -> int:
    """The position after a match, searched piece by piece; the text's length if
    none.
    """
    while place < len(markup):
        found = end.search(markup, place, place + _PIECE + _LONGEST_END)
        if found is not None:
            return found.end()
        place += _PIECE
    return len(markup)
