"""What changes in a content with each request although its publisher changed nothing.

Tracking pixels, advertisements, scripts and one-time tokens, cache busters in the
addresses of pictures, counts of comments. Taken out before contents are compared, never
from what is passed on. Linear in the text, whatever it is.
"""

from __future__ import annotations

import re
from typing import Final

from protocols.text import pieces_of_markup

# Unclosed ones reach to the end: nothing is looked for twice.
_UNSEEN: Final = re.compile(
    r"<(script|style|noscript|ins)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_TAGS: Final = re.compile(r"<(?:a|iframe|img)\b[^<>]*>", re.IGNORECASE)
_SOURCED: Final = re.compile(
    r"<(?P<name>audio|iframe|img|input|source|video)\b[^<>]*>", re.IGNORECASE
)
_TINY: Final = re.compile(
    r"\b(?:width|height)\s*[=:]\s*[\"']?[01](?:px)?(?=[\s\"';/>])", re.IGNORECASE
)
_TOKEN_FIELDS: Final = re.compile(
    r"<input\b[^<>]*\btype\s*=\s*[\"']?hidden[^<>]*>", re.IGNORECASE
)
_ADVERTISERS: Final = re.compile(
    r"//(?:[\w-]{1,63}\.){0,4}(?:doubleclick\.net|googlesyndication\.com|adnxs\.com"
    r"|amazon-adsystem\.com|buysellads\.com|google-analytics\.com|pheedo\.com"
    r"|pixel\.wp\.com|stats\.wordpress\.com|feeds\.wordpress\.com"
    r"|scorecardresearch\.com)/"
    r"|//feeds\.feedburner\.com/~",
    re.IGNORECASE,
)
_SOURCE_QUERIES: Final = re.compile(
    r"(\s(?:src|poster)\s*=\s*(?:\"[^\"?]*|'[^'?]*|[^\s\"'>?]*))\?[^\"'\s>]*",
    re.IGNORECASE,
)
_TOKENS: Final = re.compile(
    r"([?&;])(?:_?wp)?_?(?:nonce|token|sid|session(?:_?id)?|phpsessid|rand(?:om)?|cb"
    r"|csrf(?:_?token)?|timestamp)=[^&\"'\s<>]*",
    re.IGNORECASE,
)
_ATTRIBUTES: Final = re.compile(
    r"\s(?:nonce|data-[\w-]{1,60})\s*=\s*(?:\"[^\"]*\"|'[^']*')", re.IGNORECASE
)
_COUNTED: Final = r"(?:comments?|repl(?:y|ies)|reactions?|votes?|likes?|views?|shares?)"
# Each begins with what is rare in a text, so that it is read at full speed.
_COUNTS_BEFORE: Final = re.compile(
    rf"\d[\d,.]{{0,12}}\s{{0,3}}{_COUNTED}\b", re.IGNORECASE
)
_COUNTS_AFTER: Final = re.compile(r"[:(#]\s{0,3}#?\s{0,3}\d{1,12}")
_COUNTED_BEFORE: Final = re.compile(
    rf"\b(?:{_COUNTED}|points?)\s{{0,3}}\Z", re.IGNORECASE
)
_LONGEST_COUNTED: Final = 14
_NO_COMMENTS: Final = re.compile(r"no comments", re.IGNORECASE)

# Looked for first, which takes a hundredth of the time: most contents have none of it.
_SIGNS_OF_UNSEEN: Final = ("<script", "<style", "<noscript", "<ins", "<!--")
_SIGNS_OF_ADVERTISERS: Final = (
    *("doubleclick", "syndication", "adnxs", "adsystem", "buysellads", "analytics"),
    *("pheedo", "pixel.wp", "wordpress.com", "scorecard", "feedburner"),
)
_SIGNS_OF_TOKENS: Final = (
    *("nonce", "token", "sid=", "session", "rand", "cb=", "csrf", "timestamp"),
)
_SIGNS_OF_COUNTS: Final = (
    *("comment", "repl", "reaction", "vote", "like", "view", "share", "point"),
)


def without_noise(content: str) -> str:
    """A text or HTML as it is compared; not fit for anything else.

    Of a very long one each piece by itself: so much markup in one expression would
    keep all other threads from running.
    """
    return "".join(map(_quiet, pieces_of_markup(content)))


def _quiet(content: str) -> str:
    lowered = content.lower()
    if "<" in content:
        content = _without_strangers(content, lowered)
        content = _without_tokens(content, lowered)
    if _has(lowered, _SIGNS_OF_COUNTS):
        content = _COUNTS_AFTER.sub(_uncounted, _COUNTS_BEFORE.sub("", content))
    return _NO_COMMENTS.sub("", content) if "no comments" in lowered else content


def _uncounted(count: re.Match[str]) -> str:
    """What follows the name of something that is counted is a count of it."""
    start = count.start()
    before = count.string[max(0, start - _LONGEST_COUNTED) : start]
    return "" if _COUNTED_BEFORE.search(before) else count[0]


def _has(lowered: str, signs: tuple[str, ...]) -> bool:
    return any(sign in lowered for sign in signs)


def _without_strangers(content: str, lowered: str) -> str:
    """Without scripts, advertisements and pictures that nobody sees."""
    if _has(lowered, _SIGNS_OF_UNSEEN):
        content = _UNSEEN.sub("", content)
    if _has(lowered, _SIGNS_OF_ADVERTISERS):
        content = _TAGS.sub(
            lambda tag: "" if _ADVERTISERS.search(tag[0]) else tag[0], content
        )
    return _SOURCED.sub(_quiet_source, content)


def _quiet_source(tag: re.Match[str]) -> str:
    written = tag[0]
    if tag["name"].lower() == "img" and len(_TINY.findall(written)) > 1:
        return ""
    return _SOURCE_QUERIES.sub(r"\1", written) if "?" in written else written


def _without_tokens(content: str, lowered: str) -> str:
    """Without what is made for one request: in fields, addresses and attributes."""
    if "hidden" in lowered:
        content = _TOKEN_FIELDS.sub("", content)
    if "?" in content and _has(lowered, _SIGNS_OF_TOKENS):
        content = _TOKENS.sub(r"\1", content)
    if "data-" in lowered or "nonce" in lowered:
        content = _ATTRIBUTES.sub("", content)
    return content
