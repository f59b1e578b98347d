"""Text cut into words, the same way for queries and for what they look for."""

from __future__ import annotations

import html
import re
import unicodedata

_SPACED = {code: " " for code in range(128) if not re.match(r"\w", chr(code))}
_WORD = re.compile(r"\w+")
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Kana, Han
)
_CHARACTER = re.compile(f"[{_UNSPACED}]|[^{_UNSPACED}]+")
_HAS_UNSPACED = re.compile(f"[{_UNSPACED}]")
# No quantifier can run past the next "<", so that no input takes squared time.
_INLINE_TAG = re.compile(
    r"</?(?:a|abbr|b|big|cite|code|del|em|font|i|ins|kbd|mark|q|s|small|span|strike"
    r"|strong|sub|sup|tt|u|wbr)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_TAG = re.compile(r"<[a-zA-Z/!?][^<>]*>")
_UNSPOKEN = re.compile(r"<!--|<script\b|<style\b", re.IGNORECASE)
_ENDS = {
    "<!--": re.compile("-->"),
    "<script": re.compile(r"</script\s*>", re.IGNORECASE),
    "<style": re.compile(r"</style\s*>", re.IGNORECASE),
}


def words_of(text: str) -> list[str]:
    """The words of a text in its own case; punctuation separates and is dropped.

    Scripts that are written without spaces give one word a character, so that a
    word in them is a phrase.
    """
    if text.isascii():
        return text.translate(_SPACED).split()
    text = unicodedata.normalize("NFKC", text)
    words = _WORD.findall(text)
    if _HAS_UNSPACED.search(text) is None:
        return words
    return [part for word in words for part in _CHARACTER.findall(word)]


def folded(word: str) -> str:
    """A word of `words_of` in which upper and lower case are the same."""
    if word.isascii():
        return word.lower()
    return unicodedata.normalize("NFKC", word.casefold())


def folded_words(words: list[str]) -> list[str]:
    """As `folded`, for all of them."""
    text = " ".join(words)
    return text.lower().split() if text.isascii() else [*map(folded, words)]


def spoken_text(markup: str) -> str:
    """The text of a piece of HTML; blocks end words, bold letters do not."""
    if "<" in markup:
        markup = _TAG.sub(" ", _INLINE_TAG.sub("", _without_unspoken(markup)))
    return html.unescape(markup) if "&" in markup else markup


def _without_unspoken(markup: str) -> str:
    """Without comments, scripts and styles; one without an end takes the rest."""
    start = _UNSPOKEN.search(markup)
    if start is None:
        return markup
    kept, place = [], 0
    while start is not None:
        kept.append(markup[place : start.start()])
        end = _ENDS[start[0].lower()].search(markup, start.end())
        if end is None:
            return " ".join(kept)
        place = end.end()
        start = _UNSPOKEN.search(markup, place)
    return " ".join([*kept, markup[place:]])
