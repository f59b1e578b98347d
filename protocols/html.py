"""HTML of entries: made safe to show in a page, and stripped of noise for comparison.

Sanitizing is off by default (``FANFARE_SANITIZE``): content is passed on unchanged. nh3
(ammonia) parses as browsers do; hostile markup can make that take quadratic time and
space, so this belongs in a worker process with limits.

Noise is what changes with each request although the publisher changed nothing: tracking
pixels, advertisements, scripts and one-time tokens, cache busters in the URLs of
pictures, comment counts. It is removed before contents are compared, never from what is
passed on, in time that is linear in the text.
"""

from __future__ import annotations

import re
from html import escape
from typing import Final

import nh3
from msgspec.structs import replace

from protocols.model import ActivityObject, Entry, Text
from protocols.text import pieces_of_markup

# What is not closed extends to the end of the text: no byte is scanned twice.
_UNSEEN: Final = re.compile(
    r"<(script|style|noscript|ins)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_LINKING_TAGS: Final = re.compile(r"<(?:a|iframe|img)\b[^<>]*>", re.IGNORECASE)
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
_TOKEN_ATTRIBUTES: Final = re.compile(
    r"\s(?:nonce|data-[\w-]{1,60})\s*=\s*(?:\"[^\"]*\"|'[^']*')", re.IGNORECASE
)
_COUNTED: Final = r"(?:comments?|repl(?:y|ies)|reactions?|votes?|likes?|views?|shares?)"
# Each begins with what is rare in a text, so that the text is scanned at full speed.
_COUNTS_BEFORE: Final = re.compile(
    rf"\d[\d,.]{{0,12}}\s{{0,3}}{_COUNTED}\b", re.IGNORECASE
)
_COUNTS_AFTER: Final = re.compile(r"[:(#]\s{0,3}#?\s{0,3}\d{1,12}")
_COUNTED_BEFORE: Final = re.compile(
    rf"\b(?:{_COUNTED}|points?)\s{{0,3}}\Z", re.IGNORECASE
)
_LONGEST_COUNTED: Final = 14
_NO_COMMENTS: Final = re.compile(r"no comments", re.IGNORECASE)

# Searched for first, in a hundredth of the time: most contents have none of them.
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
    """The text or HTML as it is compared; not fit for anything else.

    A very long one is processed piece by piece: one regular expression over all of it
    would keep all other threads from running.
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
    """Remove a number after the name of something that is counted."""
    start = count.start()
    before = count.string[max(0, start - _LONGEST_COUNTED) : start]
    return "" if _COUNTED_BEFORE.search(before) else count[0]


def _has(lowered: str, signs: tuple[str, ...]) -> bool:
    return any(map(lowered.__contains__, signs))


def _without_strangers(content: str, lowered: str) -> str:
    """The content without scripts, advertisements and invisible pictures."""
    if _has(lowered, _SIGNS_OF_UNSEEN):
        content = _UNSEEN.sub("", content)
    if _has(lowered, _SIGNS_OF_ADVERTISERS):
        content = _LINKING_TAGS.sub(
            lambda tag: "" if _ADVERTISERS.search(tag[0]) else tag[0], content
        )
    return _SOURCED.sub(_quiet_source, content)


def _quiet_source(tag: re.Match[str]) -> str:
    written = tag[0]
    if tag["name"].lower() == "img" and len(_TINY.findall(written)) > 1:
        return ""
    return _SOURCE_QUERIES.sub(r"\1", written) if "?" in written else written


def _without_tokens(content: str, lowered: str) -> str:
    """The content without values made for one request, in fields, URLs and
    attributes.
    """
    if "hidden" in lowered:
        content = _TOKEN_FIELDS.sub("", content)
    if "?" in content and _has(lowered, _SIGNS_OF_TOKENS):
        content = _TOKENS.sub(r"\1", content)
    if "data-" in lowered or "nonce" in lowered:
        content = _TOKEN_ATTRIBUTES.sub("", content)
    return content


LARGEST_GROWTH: Final = 2
"""The factor by which a text may grow when it is cleaned; otherwise its source is
shown.
"""

_MEDIA: Final = {"src", "preload", "loop", "muted", "width", "height"}
_TABLE: Final = {"align", "colspan", "rowspan", "headers", "scope"}
_ATTRIBUTES: Final = {
    "*": {"title", "lang", "dir"},
    "a": {"href", "hreflang", "type"},
    "audio": _MEDIA,
    "blockquote": {"cite"},
    "col": {"span"},
    "colgroup": {"span"},
    "data": {"value"},
    "del": {"cite", "datetime"},
    "details": {"open"},
    "img": {"src", "srcset", "sizes", "alt", "width", "height", "align", "loading"},
    "ins": {"cite", "datetime"},
    "li": {"value"},
    "ol": {"start", "reversed", "type"},
    "q": {"cite"},
    "source": {"src", "srcset", "sizes", "type", "media"},
    "td": _TABLE,
    "th": _TABLE,
    "time": {"datetime"},
    "track": {"src", "kind", "srclang", "label", "default"},
    "video": _MEDIA | {"poster"},
}
_TAGS: Final = nh3.ALLOWED_TAGS | {
    *("address", "audio", "big", "main", "picture", "section", "source", "tfoot"),
    *("track", "video"),
}
_DROPPED_WHOLE: Final = {
    *("iframe", "noembed", "noframes", "noscript", "script", "select", "style"),
    *("template", "textarea", "title"),
}
_CLEANER: Final = nh3.Cleaner(
    tags=_TAGS,
    clean_content_tags=_DROPPED_WHOLE,
    attributes=_ATTRIBUTES,
    set_tag_attribute_values={
        "audio": {"controls": ""},
        "video": {"controls": ""},
    },
    url_schemes={
        "ftp",
        "geo",
        "http",
        "https",
        "magnet",
        "mailto",
        "sms",
        "tel",
        "xmpp",
    },
    link_rel="noopener noreferrer",
)


def sanitize(entry: Entry) -> Entry:
    """The entry with all its content as clean HTML; plain text becomes HTML, too.

    No scripts, styles, forms, frames, event handlers, ids or classes, and no URLs
    except of a few schemes. Titles are text, and extensions are as in the feed.
    """
    return _with_texts(entry, clean=True)


def disarm(entry: Entry) -> Entry:
    """Like `sanitize`, for content that is too costly to clean: its source is shown."""
    return _with_texts(entry, clean=False)


def _with_texts(entry: Entry, *, clean: bool) -> Entry:
    return replace(
        entry,
        content=_text(entry.content, clean),
        summary=_text(entry.summary, clean),
        objects=tuple(_object(each, clean) for each in entry.objects),
    )


def _object(activity_object: ActivityObject, clean: bool) -> ActivityObject:
    return replace(activity_object, content=_text(activity_object.content, clean))


def _text(text: Text | None, clean: bool) -> Text | None:
    if text is None:
        return None
    if clean and text.type in ("html", "xhtml"):
        cleaned = _CLEANER.clean(text.value)
        if len(cleaned) <= LARGEST_GROWTH * len(text.value) + 1_000:
            return Text(value=cleaned, type="html") if cleaned else None
    shown = escape(text.value, quote=False).replace("\n", "<br>\n")
    return Text(value=shown, type="html")
