"""What changes in a content with each request although its publisher changed nothing.

Tracking pixels, advertisements, scripts and one-time tokens, cache busters in the
addresses of pictures, counts of comments. Taken out before contents are compared, never
from what is passed on. Linear in the text, whatever it is.
"""

from __future__ import annotations

import re
from typing import Final

# Unclosed ones reach to the end: nothing is looked for twice.
_UNSEEN: Final = re.compile(
    r"<(script|style|noscript|ins)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_TAGS: Final = re.compile(
    r"<(?:a|audio|iframe|img|input|source|video)\b[^<>]*>", re.IGNORECASE
)
_TOKEN_FIELD: Final = re.compile(
    r"<input\b[^<>]*\btype\s*=\s*[\"']?hidden", re.IGNORECASE
)
_TINY: Final = re.compile(
    r"\b(?:width|height)\s*[=:]\s*[\"']?[01](?:px)?(?=[\s\"';/>])", re.IGNORECASE
)
_ADVERTISERS: Final = re.compile(
    r"//(?:[\w-]+\.)*(?:doubleclick\.net|googlesyndication\.com|amazon-adsystem\.com"
    r"|feedads\.g\.doubleclick\.net|pheedo\.com|pubads\.g\.doubleclick\.net|adnxs\.com"
    r"|pixel\.wp\.com|stats\.wordpress\.com|feeds\.wordpress\.com"
    r"|rss\.buysellads\.com|google-analytics\.com|scorecardresearch\.com)/"
    r"|//feeds\.feedburner\.com/~",
    re.IGNORECASE,
)
_SOURCE_QUERY: Final = re.compile(
    r"(\s(?:src|poster)\s*=\s*(?:\"[^\"?]*|'[^'?]*|[^\s\"'>?]*))\?[^\"'\s>]*",
    re.IGNORECASE,
)
_TOKENS: Final = re.compile(
    r"(?<=[?&;])(?:_?wp)?_?(?:nonce|token|sid|session(?:_?id)?|phpsessid|rand(?:om)?|cb"
    r"|csrf(?:_?token)?|timestamp)=[^&\"'\s<>]*",
    re.IGNORECASE,
)
_ATTRIBUTES: Final = re.compile(
    r"\s(?:nonce|data-[\w-]{1,60})\s*=\s*(?:\"[^\"]*\"|'[^']*')", re.IGNORECASE
)
_COUNTED: Final = r"(?:comments?|repl(?:y|ies)|reactions?|votes?|likes?|views?|shares?)"
_COUNTS: Final = re.compile(
    rf"\b(?:\d[\d,.]{{0,12}}|no)\s{{0,3}}{_COUNTED}\b"
    rf"|\b(?:{_COUNTED}|points?)\b\s{{0,3}}[:(#]\s{{0,3}}#?\s{{0,3}}\d{{1,12}}",
    re.IGNORECASE,
)


def without_noise(content: str) -> str:
    """A text or HTML as it is compared; not fit for anything else."""
    if "<" in content:
        content = _TAGS.sub(_quiet_tag, _UNSEEN.sub("", content))
    return _COUNTS.sub("", content)


def _quiet_tag(tag: re.Match[str]) -> str:
    written = tag[0]
    is_pixel = written[1:4].lower() == "img" and len(_TINY.findall(written)) > 1
    if is_pixel or _TOKEN_FIELD.match(written) or _ADVERTISERS.search(written):
        return ""
    written = _ATTRIBUTES.sub("", _SOURCE_QUERY.sub(r"\1", written))
    return _TOKENS.sub("", written)
